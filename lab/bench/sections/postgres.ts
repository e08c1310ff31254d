import { compare, type Measured, shareOfLeast, timesBest, type Want } from '../comparison.ts'
import type { ContenderName } from '../contender.ts'
import type { Section } from '../section.ts'
import type { Kind } from '../task.ts'
import { ROUNDS } from './redis.ts'

const OURS = 'Millpond'
const GRAPHILE = 'Graphile Worker'
const LOCAL = 'Graphile Worker, local queue'
const BOSS = 'pg-boss'
const NOTIFIED = 'pg-boss with NOTIFY'

/** The rivals are slower by one or two orders of magnitude, so they get as many jobs as take about as long. */
const PUSHES = { [OURS]: 50_000, [GRAPHILE]: 3000, [BOSS]: 5000 }
const BULK = 100_000
const DRAINS = { [OURS]: 100_000, [LOCAL]: 50_000, [GRAPHILE]: 5000, [BOSS]: 30_000 }
/** pg-boss without NOTIFY takes half a second for each. */
const WAITS = { [OURS]: 1000, [LOCAL]: 1000, [GRAPHILE]: 1000, [NOTIFIED]: 1000, [BOSS]: 20 }

export const postgres: Section = async function* ({ runs, quick }, stage) {
  const place = await stage.place('postgres')
  const scale = quick ? 0.1 : 1
  const rows = []
  for (const measure of plan(scale)) rows.push(...(await compare(measure, runs, place)))
  yield {
    title: `${place.about}: beside Graphile Worker and pg-boss`,
    rows,
    notes: [
      `jobs a round: ${(BULK * scale).toLocaleString('en')} in bulk and of ours drained, of the rivals down to a twentieth of that where they are slow; medians of warm rounds`,
      'the drain with 50 slots and a handler that does nothing; Graphile Worker deletes what is done, pg-boss keeps it, in both rows',
      'wait: one job at a time, pushed by another process than the worker’s; from the call of push to the handler’s start; 1,000 a run, of pg-boss without NOTIFY 20',
    ],
  }
}

export function plan(scale: number): Measured[] {
  const measure = (
    counts: Partial<Record<ContenderName, number>>,
    kind: (count: number) => Kind,
    ...wants: Want[]
  ): Measured => ({
    tasks: names(counts).map((contender) => ({ ...kind((counts[contender] ?? 0) * scale), contender })),
    wants,
  })
  const each = (count: number) => ({ [OURS]: count, [GRAPHILE]: count, [BOSS]: count })
  const push = (row: string, way: 'one' | 'flight' | 'bulk', counts: ReturnType<typeof each>, bar?: Want['bar']) =>
    measure(counts, (count) => ({ measure: 'push', way, count, rounds: ROUNDS }), {
      ...{ row, figure: 'warm', unit: 'jobs/s' },
      ...(bar ? { bar } : {}),
    })
  const drain = (row: string, forget: boolean) =>
    measure(
      DRAINS,
      (count) => ({ measure: 'drain', from: 'backlog', work: 'nothing', count, rounds: ROUNDS, forget }),
      {
        ...{ row, figure: 'warm', unit: 'jobs/s' },
        bar: timesBest(1.8, LOCAL),
      },
    )
  return [
    push('push, one by one', 'one', each(3000)),
    { ...push('push, 50 in flight', 'flight', PUSHES, timesBest(20)), floor: [GRAPHILE] },
    { ...push('push, bulk of 500', 'bulk', each(BULK), timesBest(2)), floor: [GRAPHILE] },
    { ...drain('drain, done kept for 1 h', false), floor: [LOCAL] },
    drain('drain, done not kept', true),
    measure(
      WAITS,
      (samples) => ({ measure: 'wait', across: true, samples, gap: 20 }),
      { row: 'wait when idle, p50', figure: 'p50', unit: 'ms', bar: shareOfLeast(1) },
      { row: 'wait when idle, p99', figure: 'p99', unit: 'ms', bar: shareOfLeast(1) },
    ),
  ]
}

function names(counts: Partial<Record<ContenderName, number>>): ContenderName[] {
  return [OURS, LOCAL, GRAPHILE, NOTIFIED, BOSS].filter((name) => Object.hasOwn(counts, name)) as ContenderName[]
}
