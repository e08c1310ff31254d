import type { PrefetchTask } from '../measure.ts'
import { atMost, type Row } from '../row.ts'
import { inTurn } from '../runner.ts'
import type { Section } from '../section.ts'
import { MISSING } from '../statistics.ts'

export const prefetch: Section = async function* ({ quick }, tell) {
  tell('prefetch')
  const long = quick ? 3000 : 10_000
  const task: PrefetchTask = { measure: 'prefetch', window: 50, fixed: undefined, long, short: 5, count: 1000 }
  // Once: these are counts, not speeds, and each takes as long as the long job.
  const [ours = {}, pull = {}, fixed = {}] = await inTurn(
    [task, { ...task, window: 0 }, { ...task, window: undefined, fixed: 10 }],
    1,
  )
  const row = (name: string, key: string, unit: Row['unit']): Row => ({
    name,
    unit,
    ours: ours[key] ?? MISSING,
    rivals: [
      { name: 'pure pull (window 0)', figure: pull[key] ?? MISSING },
      { name: 'fixed prefetch of 10', figure: fixed[key] ?? MISSING },
    ],
  })
  yield {
    title: `Prefetch: a job of ${long / 1000} s amid 1,000 of 5 ms, four workers with one slot each, SQLite FULL`,
    rows: [
      row('last short job finished after', 'last short', 's'),
      {
        ...row('short jobs that waited while a worker was idle', 'held up', 'jobs'),
        bar: atMost(ours['held up']?.median ?? Number.NaN, 0),
      },
    ],
    notes: [
      'one run; Millpond with its window of 50 ms; fixed prefetch is a plain loop over the store that claims 10 and runs them in order',
    ],
  }
}
