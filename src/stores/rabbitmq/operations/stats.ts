import type { QueueStats } from '../../../store.ts'
import { type StoreContext, totalsOf, valuesOf } from '../context.ts'

/** Dropped. */
export async function record(): Promise<void> {}

/** What RabbitMQ can count, and what this process knows: see contract/rabbitmq/README.md, "stats". */
export async function stats(
  context: StoreContext,
  { queue: only }: { queue?: string; minutes?: number },
): Promise<QueueStats[]> {
  const known = [...context.registry.queues.keys()]
  return Promise.all(known.filter((name) => only === undefined || name === only).map((name) => statsOf(context, name)))
}

async function statsOf(context: StoreContext, queue: string): Promise<QueueStats> {
  const { registry, names, topology, sources } = context
  const { paused, capacity } = valuesOf(context, queue)
  const lines = registry.lines(queue).map((line) => names.line(queue, line))
  const [dead = 0, ...waiting] = await Promise.all([names.dead(queue), ...lines].map((name) => topology.count(name)))
  return {
    ...{ queue, paused, capacity, overrides: registry.queues.get(queue)?.given.operator ?? {}, lastClaim: null },
    counts: {
      ...{ scheduled: 0, waiting: waiting.reduce<number>((sum, count) => sum + (count ?? 0), 0) },
      ...{ running: sources.get(queue)?.held.length ?? 0, done: 0, dead: dead ?? 0, cancelled: 0 },
    },
    totals: { ...totalsOf(context, queue) },
    ...{ oldestWaiting: null, limits: null, nextStart: 0, groupsAtLimit: 0, groupsHeld: 0, histograms: [] },
  }
}
