import type { Claimed, ClaimRequest } from '../../../store.ts'
import { type StoreContext, sourceOf } from '../context.ts'

export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { queues, settings, bells } = context
  await queues.find(request.queue)
  const { priorities, values } = queues.of(request.queue)
  const lease = request.lease ?? values.lease
  const source = sourceOf(context, request.queue)
  const isThere = settings.foreign || priorities.length > 0
  const jobs = isThere ? await source.claim(request, context.now() + lease) : []
  if (values.capacity !== null && jobs.length > 0) bells.ring('room', request.queue)
  return { now: context.now(), lease, jobs, retryAfter: null, limited: false }
}
