import { atMost } from '../../bars.ts'
import type { StoreName } from '../../places.ts'
import { MISSING } from '../../statistics.ts'
import type { Row } from '../row.ts'
import { measured } from '../runner.ts'
import type { Section } from '../section.ts'
import type { IdleTask, Task, WaitTask } from '../task.ts'

export const idle: Section = async function* ({ runs, quick }, stage) {
  const samples = quick ? 60 : 300
  const one = async (store: StoreName, task: Task, times: number) => {
    const [figures] = await measured([task], times, await stage.place(store))
    return (figure: string) => figures?.(figure) ?? MISSING
  }
  const usual = { measure: 'wait', across: false, samples, gap: 20 } as const satisfies WaitTask
  const cases = [
    { name: 'memory', store: 'memory', across: false, most: 1 },
    { name: 'SQLite FULL, one process', store: 'sqlite', across: false, most: 1 },
    { name: 'SQLite FULL, two processes', store: 'sqlite', across: true, most: 25 },
  ] as const
  const fastq = await one('memory', { ...usual, contender: 'fastq' }, Math.min(runs, 2))
  // It polls once a second: few samples take long enough.
  const polling = { ...usual, contender: 'plainjob', samples: quick ? 3 : 12, gap: 900 } as const
  const plainjob = await one('sqlite', polling, Math.min(runs, 2))
  const rows: Row[] = []
  for (const { name, store, across, most } of cases) {
    const ours = await one(store, { ...usual, contender: 'Millpond', across }, runs)
    for (const share of ['p50', 'p99']) {
      const rivals =
        store === 'memory'
          ? [{ name: 'fastq', figure: fastq(share) }]
          : across
            ? []
            : [{ name: 'plainjob, as it comes', figure: plainjob(share) }]
      const bar = share === 'p50' ? atMost(ours(share).median, most, ' ms') : undefined
      rows.push({ name: `wait when idle, ${name}, ${share}`, unit: 'ms', ours: ours(share), rivals, bar })
    }
  }

  const seconds = quick ? 3 : 6
  const cpu = async (store: StoreName, contender: (IdleTask & Task)['contender']) =>
    (await one(store, { measure: 'idle', seconds, contender }, Math.min(runs, 3)))('percent')
  const floor = { name: 'a process without a queue', figure: await cpu('memory', 'nothing') }
  const beside = { name: 'plainjob, as it comes', figure: await cpu('sqlite', 'plainjob') }
  const inMemory = await cpu('memory', 'Millpond')
  rows.push(
    { name: 'idle worker on SQLite', unit: '% CPU', ours: await cpu('sqlite', 'Millpond'), rivals: [beside, floor] },
    { name: 'idle worker in memory', unit: '% CPU', ours: inMemory, rivals: [floor] },
  )
  yield {
    title: 'When there is nothing to do',
    rows,
    notes: [
      `wait: from the call of push to the start of the handler, one job at a time, ${samples} a run; FULL, so that it includes one fdatasync`,
      `CPU: all threads of a process with an idle worker, over ${seconds} s, in per cent of one core; at most 3 runs of it, and 2 of the rivals' waits`,
    ],
  }
}
