import type { OfQueue } from '../../../store.ts'
import type { ExtendOutcome, Extension } from '../../../values/jobs/records.ts'
import { type StoreContext, sourceOf } from '../context.ts'

/** A claim is an unacknowledged delivery. So it holds as long as the channel does, of which this makes sure. */
export async function extend(
  context: StoreContext,
  { queue, items, lease }: OfQueue<Extension> & { lease: number | null },
): Promise<ExtendOutcome[]> {
  const source = sourceOf(context, queue)
  const until = context.now() + (lease ?? context.queues.of(queue).values.lease)
  if (items.some((item) => source.find(item) !== undefined)) await source.settled()
  return items.map((item) => {
    const delivery = source.find(item)
    if (delivery === undefined) return 'stale'
    delivery.leaseUntil = Math.max(delivery.leaseUntil, until)
    return 'ok'
  })
}
