import type { QueueStats } from '../../../store.ts'
import { type StoreContext, sourceOf, waitingIn } from '../context.ts'

/** Dropped. */
export async function record(): Promise<void> {}

/** What RabbitMQ can count, and what this process knows: contract/rabbitmq/README.md, "stats". */
export async function stats(context: StoreContext, { queue: only }: { queue?: string }): Promise<QueueStats[]> {
  const known = [...context.registry.queues.keys()]
  return Promise.all(known.filter((name) => only === undefined || name === only).map((name) => statsOf(context, name)))
}

async function statsOf(context: StoreContext, queue: string): Promise<QueueStats> {
  const { registry, names, topology } = context
  const { values, given } = registry.of(queue)
  const [waiting, dead] = await Promise.all([waitingIn(context, queue), topology.count(names.dead(queue))])
  const { held, totals } = sourceOf(context, queue)
  return {
    ...{ queue, paused: values.paused, capacity: values.capacity, overrides: given.operator, lastClaim: null },
    counts: { scheduled: 0, waiting, running: held.length, done: 0, dead: dead ?? 0, cancelled: 0 },
    totals: { ...totals },
    ...{ oldestWaiting: null, limits: null, nextStart: 0, groupsAtLimit: 0, groupsHeld: 0, histograms: [] },
  }
}
