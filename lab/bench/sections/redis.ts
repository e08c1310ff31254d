import { compare, type Measured, shareOfLeast, timesBest, type Want } from '../comparison.ts'
import type { Section } from '../section.ts'
import type { Kind } from '../task.ts'

const CONTENDERS = ['Millpond', 'BullMQ'] as const

export const redis: Section = async function* ({ runs, quick, fsync }, stage) {
  const place = await stage.place(fsync ? 'redis-fsync' : 'redis')
  const scale = quick ? 0.1 : 1
  const rows = []
  for (const measure of plan(scale, quick ? 50 : 1000)) rows.push(...(await compare(measure, runs, place)))
  yield {
    title: `${place.about}: beside BullMQ`,
    rows,
    notes: [
      `${(JOBS * scale).toLocaleString('en')} jobs a round, a tenth of that one by one; the drain with 50 slots and a handler that does nothing; medians of warm rounds`,
      `wait: ${quick ? 50 : '1,000'} jobs a run, one at a time, pushed by another process than the worker's; from the call of push to the handler's start`,
      'memory: the difference in used_memory, with bodies like {"n":12345}',
    ],
  }
}

const JOBS = 100_000
export const ROUNDS = 3

export function plan(scale: number, samples: number): Measured[] {
  const count = JOBS * scale
  const measure = (kind: Kind, ...wants: Want[]): Measured => ({
    tasks: CONTENDERS.map((contender) => ({ ...kind, contender })),
    wants,
  })
  const push = (row: string, way: 'one' | 'flight' | 'bulk', many: number, bar?: Want['bar']) =>
    measure(
      { measure: 'push', way, count: many, rounds: ROUNDS },
      { row, figure: 'warm', unit: 'jobs/s', ...(bar ? { bar } : {}) },
    )
  const drain = (row: string, forget: boolean) =>
    measure(
      { measure: 'drain', from: 'backlog', work: 'nothing', count, rounds: ROUNDS, forget },
      { row, figure: 'warm', unit: 'jobs/s', bar: timesBest(5) },
    )
  const floor = ['BullMQ'] as const
  return [
    push('push, one by one', 'one', count / 10),
    { ...push('push, 50 in flight', 'flight', count, timesBest(2.5)), floor },
    push('push, bulk of 500', 'bulk', count),
    { ...drain('drain, done kept for 1 h', false), floor },
    drain('drain, done not kept', true),
    measure(
      { measure: 'wait', across: true, samples, gap: 20 },
      { row: 'wait when idle, p50', figure: 'p50', unit: 'ms', bar: shareOfLeast(1) },
      { row: 'wait when idle, p99', figure: 'p99', unit: 'ms', bar: shareOfLeast(1) },
    ),
    {
      ...measure(
        { measure: 'bytes', count },
        { row: 'memory per waiting job', figure: 'bytes', unit: 'bytes', bar: shareOfLeast(0.6) },
      ),
      floor,
    },
  ]
}
