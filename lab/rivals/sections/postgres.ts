import { compare, shareOfLeast, timesBest, type Want } from '../comparison.ts'
import type { ContenderName } from '../contender.ts'
import type { Section } from '../section.ts'
import type { Kind } from '../task.ts'

const OURS = 'Millpond on PostgreSQL'
const GRAPHILE = 'Graphile Worker'
const LOCAL = 'Graphile Worker, local queue'
const BOSS = 'pg-boss'
const NOTIFIED = 'pg-boss with NOTIFY'

/** The rivals are slower by one or two orders of magnitude, so they get as many jobs as take about as long. */
const PUSHES = { [OURS]: 50_000, [GRAPHILE]: 3000, [BOSS]: 5000 }
const DRAINS = { [OURS]: 100_000, [LOCAL]: 50_000, [GRAPHILE]: 5000, [BOSS]: 30_000 }
/** pg-boss without NOTIFY takes half a second for each. */
const WAITS = { [OURS]: 1000, [LOCAL]: 1000, [GRAPHILE]: 1000, [NOTIFIED]: 1000, [BOSS]: 20 }

export const postgres: Section = async function* (stage) {
  const { runs, quick } = stage.options
  const place = await stage.postgres()
  const scale = quick ? 0.1 : 1
  const bulk = 100_000 * scale
  const rows = (counts: Partial<Record<ContenderName, number>>, kind: (count: number) => Kind, ...wants: Want[]) =>
    compare(
      names(counts).map((contender) => ({ ...kind((counts[contender] ?? 0) * scale), contender })),
      wants,
      runs,
      place,
      stage,
    )
  const each = (count: number) => ({ [OURS]: count, [GRAPHILE]: count, [BOSS]: count })
  const drain = (row: string, forget: boolean) =>
    rows(DRAINS, (count) => ({ measure: 'drain', count, forget }), {
      row,
      figure: 'warm',
      unit: 'jobs/s',
      bar: timesBest(1.8, LOCAL),
    })
  yield {
    title: `${place.about}: beside Graphile Worker and pg-boss`,
    rows: [
      ...(await rows(each(3000), (count) => ({ measure: 'push', way: 'one', count }), {
        row: 'push, one by one',
        figure: 'warm',
        unit: 'jobs/s',
      })),
      ...(await rows(PUSHES, (count) => ({ measure: 'push', way: 'flight', count }), {
        row: 'push, 50 in flight',
        figure: 'warm',
        unit: 'jobs/s',
        bar: timesBest(20),
      })),
      ...(await rows(each(100_000), (count) => ({ measure: 'push', way: 'bulk', count }), {
        row: 'push, bulk of 500',
        figure: 'warm',
        unit: 'jobs/s',
        bar: timesBest(2),
      })),
      ...(await drain('drain, done kept for 1 h', false)),
      ...(await drain('drain, done not kept', true)),
      ...(await rows(
        WAITS,
        (samples) => ({ measure: 'wait', samples }),
        { row: 'wait when idle, p50', figure: 'p50', unit: 'ms', bar: shareOfLeast(1) },
        { row: 'wait when idle, p99', figure: 'p99', unit: 'ms', bar: shareOfLeast(1) },
      )),
    ],
    notes: [
      `jobs a round: ${bulk.toLocaleString('en')} in bulk and of ours drained, of the rivals down to a twentieth of that where they are slow; medians of warm rounds`,
      'the drain with 50 slots and a handler that does nothing; Graphile Worker deletes what is done, pg-boss keeps it, in both rows',
      'wait: one job at a time, pushed by another process than the worker’s; from the call of push to the handler’s start; 1,000 a run, of pg-boss without NOTIFY 20',
    ],
  }
}

function names(counts: Partial<Record<ContenderName, number>>): ContenderName[] {
  return [OURS, LOCAL, GRAPHILE, NOTIFIED, BOSS].filter((name) => Object.hasOwn(counts, name)) as ContenderName[]
}
