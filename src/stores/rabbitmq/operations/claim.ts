import type { Claimed, ClaimRequest } from '../../../store.ts'
import { type StoreContext, sourceOf } from '../context.ts'

export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { paused, capacity, lease: ofQueue } = context.registry.of(request.queue).values
  const lease = request.lease ?? ofQueue
  const isKnown = context.settings.foreign || context.registry.queues.has(request.queue)
  const source = sourceOf(context, request.queue)
  const jobs = paused || !isKnown ? [] : await source.claim(request, context.now() + lease)
  if (capacity !== null && jobs.length > 0) context.bells.ring('room', request.queue)
  return { now: context.now(), lease, jobs, retryAfter: null, limited: false }
}
