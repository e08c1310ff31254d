import type { Claimed, ClaimRequest } from '../../../values/jobs/records.ts'
import { type StoreContext, sourceOf } from '../context.ts'
import { release } from './end.ts'
import { takeBack } from './sweep.ts'

export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { queues, settings, bells } = context
  const { queue } = request
  await queues.find(queue)
  const { priorities, values } = queues.of(queue)
  const lease = request.lease ?? values.lease
  const source = sourceOf(context, queue)
  const isThere = settings.foreign || priorities.length > 0
  const taken = isThere ? await source.claim(request, context.now() + lease) : []
  if (values.capacity !== null && taken.length > 0) bells.ring('room', queue)
  const lost = taken.filter(({ isLost }) => isLost)
  const early = taken.filter(({ isLost, remaining }) => !isLost && remaining > 0)
  await takeBack(
    context,
    source,
    lost.map(({ job }) => job),
  )
  await release(context, { queue, items: early.map(({ job }) => job) })
  const jobs = taken.filter((each) => !lost.includes(each) && !early.includes(each)).map(({ job }) => job)
  return { now: context.now(), lease, jobs, retryAfter: null, limited: false }
}
