import type { WaitTask } from '../measure.ts'
import { atMost, type Row } from '../row.ts'
import { inTurn } from '../runner.ts'
import type { Section } from '../section.ts'
import { MISSING } from '../statistics.ts'

export const idle: Section = async function* ({ runs, quick }, tell) {
  const samples = quick ? 60 : 300
  const ours = { measure: 'wait', contender: 'millpond', across: false, samples, gap: 20 } as const
  const tasks: { name: string; task: WaitTask; most: number }[] = [
    { name: 'memory', task: { ...ours, durability: 'none' }, most: 1 },
    { name: 'SQLite FULL, one process', task: { ...ours, durability: 'full' }, most: 1 },
    { name: 'SQLite FULL, two processes', task: { ...ours, durability: 'full', across: true, gap: 40 }, most: 25 },
  ]
  tell('wait when idle')
  const waits = await inTurn(
    tasks.map(({ task }) => task),
    runs,
  )
  // It polls once a second: few samples take long enough.
  const polling: WaitTask = { ...ours, contender: 'plainjob', durability: 'full', samples: quick ? 3 : 12, gap: 900 }
  const fastq: WaitTask = { ...ours, contender: 'fastq', durability: 'none' }
  const [plainjob = {}, inMemory = {}] = await inTurn([polling, fastq], Math.min(runs, 2))
  const rows: Row[] = []
  for (const [index, { name, task, most }] of tasks.entries()) {
    for (const share of ['p50', 'p99'] as const) {
      const own = waits[index]?.[share] ?? MISSING
      const beside = task.durability === 'none' ? inMemory[share] : task.across ? undefined : plainjob[share]
      const rival = task.durability === 'none' ? 'fastq' : 'plainjob, as it comes'
      rows.push({
        name: `wait when idle, ${name}, ${share}`,
        unit: 'ms',
        ours: own,
        rivals: beside === undefined ? [] : [{ name: rival, figure: beside }],
        bar: share === 'p50' ? atMost(own.median, most, ' ms') : undefined,
      })
    }
  }

  tell('CPU when idle')
  const seconds = quick ? 3 : 6
  const cpu = { measure: 'idle', seconds } as const
  const [sqlite, memory, plain, nothing] = await inTurn(
    [
      { ...cpu, contender: 'millpond', durability: 'full' },
      { ...cpu, contender: 'millpond', durability: 'none' },
      { ...cpu, contender: 'plainjob', durability: 'full' },
      { ...cpu, contender: 'nothing', durability: 'none' },
    ],
    Math.min(runs, 3),
  )
  const floor = { name: 'a process without a queue', figure: nothing?.percent ?? MISSING }
  const beside = { name: 'plainjob, as it comes', figure: plain?.percent ?? MISSING }
  rows.push({
    name: 'idle worker on SQLite',
    unit: '% CPU',
    ours: sqlite?.percent ?? MISSING,
    rivals: [beside, floor],
  })
  rows.push({ name: 'idle worker in memory', unit: '% CPU', ours: memory?.percent ?? MISSING, rivals: [floor] })
  yield {
    title: 'When there is nothing to do',
    rows,
    notes: [
      `wait: from the call of push to the start of the handler, one job at a time, ${samples} a run; FULL, so that it includes one fdatasync`,
      `CPU: all threads of a process with an idle worker, over ${seconds} s, in per cent of one core; at most 3 runs of it, and 2 of the rivals' waits`,
    ],
  }
}
