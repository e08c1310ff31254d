import type { Claimed, ClaimRequest } from '../../../store.ts'
import { type StoreContext, valuesOf } from '../context.ts'
import { Source } from '../source.ts'

export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { queue } = request
  const { lease: own, paused } = valuesOf(context, queue)
  const lease = request.lease ?? own
  const now = context.now()
  const isKnown = context.settings.foreign || context.registry.queues.has(queue)
  const jobs = isKnown && !paused ? await sourceOf(context, queue).claim(request, now + lease) : []
  return { now, lease, jobs, retryAfter: null, limited: false }
}

function sourceOf(context: StoreContext, queue: string): Source {
  const known = context.sources.get(queue)
  if (known !== undefined) return known
  const source = new Source(context, queue)
  context.sources.set(queue, source)
  return source
}
