import { atMost } from '../../bars.ts'
import { MISSING } from '../../statistics.ts'
import type { Row } from '../row.ts'
import { measured } from '../runner.ts'
import type { Section } from '../section.ts'

export const prefetch: Section = async function* ({ quick }, stage) {
  const long = quick ? 3000 : 10_000
  const common = { measure: 'prefetch', contender: 'Millpond', long, short: 5, count: 1000 } as const
  // Once: these are counts, not speeds, and each takes as long as the long job.
  const [ours, pull, fixed] = await measured(
    [
      { ...common, window: 50, fixed: undefined },
      { ...common, window: 0, fixed: undefined },
      { ...common, window: undefined, fixed: 10 },
    ],
    1,
    await stage.place('sqlite'),
  )
  const row = (name: string, key: string, unit: Row['unit']): Row => ({
    name,
    unit,
    ours: ours?.(key) ?? MISSING,
    rivals: [
      { name: 'pure pull (window 0)', figure: pull?.(key) ?? MISSING },
      { name: 'fixed prefetch of 10', figure: fixed?.(key) ?? MISSING },
    ],
  })
  yield {
    title: `Prefetch: a job of ${long / 1000} s amid 1,000 of 5 ms, four workers with one slot each, SQLite FULL`,
    rows: [
      row('last short job finished after', 'last short', 's'),
      {
        ...row('short jobs that waited while a worker was idle', 'held up', 'jobs'),
        bar: atMost((ours?.('held up') ?? MISSING).median, 0),
      },
    ],
    notes: [
      'one run; Millpond with its window of 50 ms; fixed prefetch is a plain loop over the store that claims 10 and runs them in order',
    ],
  }
}
