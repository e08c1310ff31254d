import type { Extension, ExtendOutcome, OfQueue } from '../../../store.ts'
import { type StoreContext, valuesOf } from '../context.ts'

/** A lease is the unacknowledged delivery. So it holds as long as the channel does, of which this makes sure. */
export async function extend(
  context: StoreContext,
  { queue, items, lease }: OfQueue<Extension> & { lease: number | null },
): Promise<ExtendOutcome[]> {
  const source = context.sources.get(queue)
  const until = context.now() + (lease ?? valuesOf(context, queue).lease)
  if (source !== undefined && items.some((item) => source.find(item) !== undefined)) await source.settled()
  return items.map((item) => {
    const delivery = source?.find(item)
    if (delivery === undefined) return 'stale'
    delivery.leaseUntil = Math.max(delivery.leaseUntil, until)
    return 'ok'
  })
}
