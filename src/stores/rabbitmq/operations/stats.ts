import type { QueueStats } from '../../../values/operations/requests.ts'
import { type StoreContext, sourceOf, waitingIn } from '../context.ts'
import { DEAD } from '../names.ts'

/** Dropped. */
export async function record(): Promise<void> {}

/** What RabbitMQ can count, and what this process knows: contract/rabbitmq/README.md, "stats". */
export async function stats(context: StoreContext, { queue: only }: { queue?: string }): Promise<QueueStats[]> {
  const { queues, settings, topology } = context
  if (only !== undefined) await queues.find(only)
  const isForeign = only !== undefined && settings.foreign && (await topology.count(only)) !== null
  const asked = isForeign ? [only] : queues.names.filter((name) => only === undefined || name === only)
  return Promise.all(asked.map((name) => statsOf(context, name)))
}

async function statsOf(context: StoreContext, queue: string): Promise<QueueStats> {
  const { queues, names, topology } = context
  const { values } = queues.of(queue)
  const [waiting, dead] = await Promise.all([waitingIn(context, queue), topology.count(names.line(queue, DEAD))])
  const { held, totals } = sourceOf(context, queue)
  return {
    ...{ queue, paused: false, capacity: values.capacity, overrides: {}, lastClaim: null },
    counts: { blocked: 0, scheduled: 0, waiting, running: held.length, done: 0, dead: dead ?? 0, cancelled: 0 },
    totals: { ...totals },
    ...{ oldestWaiting: null, limits: null, nextStart: 0, groupsAtLimit: 0, groupsHeld: 0, histograms: [] },
  }
}
