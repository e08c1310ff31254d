import type { QueueStats } from '../../../store.ts'
import { type StoreContext, sourceOf } from '../context.ts'

/** Dropped. */
export async function record(): Promise<void> {}

/** What RabbitMQ can count, and what this process knows: contract/rabbitmq/README.md, "stats". */
export async function stats(context: StoreContext, { queue: only }: { queue?: string }): Promise<QueueStats[]> {
  const known = [...context.registry.queues.keys()]
  return Promise.all(known.filter((name) => only === undefined || name === only).map((name) => statsOf(context, name)))
}

async function statsOf(context: StoreContext, queue: string): Promise<QueueStats> {
  const { registry, names, topology } = context
  const { values, given, lines } = registry.of(queue)
  const { held, parked, totals } = sourceOf(context, queue)
  const all = [names.dead(queue), ...lines.map((line) => names.line(queue, line))]
  const [dead, ...waiting] = await Promise.all(all.map((name) => topology.count(name)))
  return {
    ...{ queue, paused: values.paused, capacity: values.capacity, overrides: given.operator, lastClaim: null },
    counts: {
      ...{ scheduled: 0, waiting: waiting.reduce<number>((sum, count) => sum + (count ?? 0), parked) },
      ...{ running: held.length, done: 0, dead: dead ?? 0, cancelled: 0 },
    },
    totals: { ...totals },
    ...{ oldestWaiting: null, limits: null, nextStart: 0, groupsAtLimit: 0, groupsHeld: 0, histograms: [] },
  }
}
