/** What the operations of one RabbitMQ store share. */
import { Source } from './source.ts'
import type { Traffic } from './traffic.ts'

export interface StoreContext extends Traffic {
  /** By queue. */
  sources: Map<string, Source>
  /** Settles when the last push to a queue with a capacity has its answer. */
  limitedPush: Promise<unknown>
}

/** What RabbitMQ has of the queue, and what it sent here before that. Exact while nobody pushes or claims. */
export async function waitingIn(context: StoreContext, queue: string): Promise<number> {
  const { queues, names, topology, settings } = context
  await queues.find(queue)
  const lines = queues.linesOf(queue, settings.foreign)
  const counts = await Promise.all(lines.map((line) => topology.count(names.line(queue, line))))
  return counts.reduce<number>((sum, each) => sum + (each ?? 0), await sourceOf(context, queue).parked())
}

export function sourceOf(context: StoreContext, queue: string): Source {
  const source = context.sources.get(queue) ?? new Source(context, queue)
  context.sources.set(queue, source)
  return source
}
