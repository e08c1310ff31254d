/** The stores on Redis and PostgreSQL beside the queues that people use there. */
import type { StoreName } from '../../places.ts'
import { compare, type Measured, shareOfLeast, timesBest, type Want } from '../comparison.ts'
import type { ContenderName } from '../contender.ts'
import type { Section } from '../section.ts'
import type { Kind, PushTask } from '../task.ts'

type Counts = Partial<Record<ContenderName, number>>

interface Side {
  store: StoreName
  /** Jobs of a round by contender, ours first. A slower contender gets fewer jobs, so that its rounds take about as long. */
  counts: Record<'one' | 'flight' | 'bulk' | 'drain' | 'wait', Counts> & { bytes?: Counts }
  /** How many times the rate of the best rival ours has to reach. */
  least: { flight: number; bulk?: number; drain: number }
  /** The rivals of the floors of pushes and drains. */
  beside: { push: ContenderName; drain: ContenderName }
  notes: string[]
}

const both = (count: number): Counts => ({ Millpond: count, BullMQ: count })
const REDIS: Side = {
  store: 'redis',
  counts: {
    ...{ one: both(10_000), flight: both(100_000), bulk: both(100_000), drain: both(100_000) },
    ...{ wait: both(1000), bytes: both(100_000) },
  },
  least: { flight: 2.5, drain: 5 },
  beside: { push: 'BullMQ', drain: 'BullMQ' },
  notes: ['memory: the difference in used_memory, with bodies like {"n":12345}'],
}

const LOCAL = 'Graphile Worker, local queue'
const each = (ours: number, graphile: number, boss: number): Counts => {
  return { Millpond: ours, 'Graphile Worker': graphile, 'pg-boss': boss }
}
const POSTGRES: Side = {
  store: 'postgres',
  counts: {
    one: each(3000, 3000, 3000),
    flight: each(50_000, 3000, 5000),
    bulk: each(100_000, 100_000, 100_000),
    drain: { Millpond: 100_000, [LOCAL]: 50_000, 'Graphile Worker': 5000, 'pg-boss': 30_000 },
    // pg-boss without NOTIFY takes half a second for each.
    wait: { Millpond: 1000, [LOCAL]: 1000, 'Graphile Worker': 1000, 'pg-boss with NOTIFY': 1000, 'pg-boss': 20 },
  },
  least: { flight: 20, bulk: 2, drain: 1.8 },
  beside: { push: 'Graphile Worker', drain: LOCAL },
  notes: ['Graphile Worker deletes what is done, pg-boss keeps it, in both rows of drains'],
}

export const redis = section(REDIS)
export const postgres = section(POSTGRES)
export const redisPlan = (scale: number) => plan(REDIS, scale)
export const postgresPlan = (scale: number) => plan(POSTGRES, scale)

function section(side: Side): Section {
  return async function* ({ runs, quick, fsync }, stage) {
    const place = await stage.place(side.store === 'redis' && fsync ? 'redis-fsync' : side.store)
    const rows = []
    for (const measured of plan(side, quick ? 0.1 : 1)) rows.push(...(await compare(measured, runs, place)))
    const notes = [
      `up to ${quick ? '10,000' : '100,000'} jobs a round, fewer where that would take long; medians of warm rounds`,
      'the drain with 50 slots and a handler that does nothing',
      'wait: one job at a time, pushed by another process than the worker’s; from the call of push to the handler’s start',
    ]
    yield { title: place.about, rows, notes: [...notes, ...side.notes] }
  }
}

const ROUNDS = 3

function plan({ counts, least, beside }: Side, scale: number): Measured[] {
  const measured = (of: Counts, kind: (count: number) => Kind, ...wants: Want[]): Measured => {
    const named = Object.entries(of) as [ContenderName, number][]
    return { tasks: named.map(([contender, count]) => ({ ...kind(count * scale), contender })), wants }
  }
  const rate = (row: string, bar?: Want['bar']): Want => {
    return { row, figure: 'warm', unit: 'jobs/s', ...(bar === undefined ? {} : { bar }) }
  }
  const push = (row: string, way: 'one' | 'flight' | 'bulk', times?: number): Measured => {
    const kind = (count: number): PushTask => ({ measure: 'push', way, count, rounds: ROUNDS })
    if (times === undefined) return measured(counts[way], kind, rate(row))
    return { ...measured(counts[way], kind, rate(row, timesBest(times))), floor: [beside.push] }
  }
  const drain = (row: string, forget: boolean): Measured =>
    measured(
      counts.drain,
      (count) => ({ measure: 'drain', from: 'backlog', work: 'nothing', count, rounds: ROUNDS, forget }),
      rate(row, timesBest(least.drain, beside.drain)),
    )
  const found: Measured[] = [
    push('push, one by one', 'one'),
    push('push, 50 in flight', 'flight', least.flight),
    push('push, bulk of 500', 'bulk', least.bulk),
    { ...drain('drain, done kept for 1 h', false), floor: [beside.drain] },
    drain('drain, done not kept', true),
    measured(
      counts.wait,
      (samples) => ({ measure: 'wait', across: true, samples, gap: 20 }),
      { row: 'wait when idle, p50', figure: 'p50', unit: 'ms', bar: shareOfLeast(1) },
      { row: 'wait when idle, p99', figure: 'p99', unit: 'ms', bar: shareOfLeast(1) },
    ),
  ]
  if (counts.bytes === undefined) return found
  const want: Want = { row: 'memory per waiting job', figure: 'bytes', unit: 'bytes', bar: shareOfLeast(0.6) }
  const bytes = measured(counts.bytes, (count) => ({ measure: 'bytes', count }), want)
  return [...found, { ...bytes, floor: [beside.push] }]
}
