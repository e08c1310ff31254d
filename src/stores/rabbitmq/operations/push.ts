import type { NewJob, PushOutcome } from '../../../values/jobs/records.ts'
import { type StoreContext, sourceOf, waitingIn } from '../context.ts'
import { tooLarge } from '../errors.ts'
import { send } from '../traffic.ts'
import { parcelOf } from '../wire.ts'

/** @throws StoreUnavailable, StoreFull, Closed */
export function push(context: StoreContext, { jobs }: { jobs: readonly NewJob[] }): Promise<PushOutcome[]> {
  const isLimited = jobs.some(({ queue }) => context.queues.of(queue).values.capacity !== null)
  if (!isLimited) return pushThese(context, jobs, () => true)
  // One after the other, so that each counts the jobs of those before it.
  const pushing = context.limitedPush.then(() => pushWhatFits(context, jobs))
  context.limitedPush = pushing.catch(() => undefined)
  return pushing
}

/** Jobs are counted before a push, since the limits of RabbitMQ's queues are fixed once they are made, and know one line only. */
async function pushWhatFits(context: StoreContext, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  const room = new Map<string, number>()
  for (const queue of new Set(jobs.map((job) => job.queue))) {
    const { capacity } = context.queues.of(queue).values
    room.set(queue, capacity === null ? Number.POSITIVE_INFINITY : capacity - (await waitingIn(context, queue)))
  }
  return pushThese(context, jobs, ({ queue }) => {
    const left = room.get(queue) ?? 0
    room.set(queue, left - 1)
    return left > 0
  })
}

async function pushThese(
  context: StoreContext,
  jobs: readonly NewJob[],
  fits: (job: NewJob) => boolean,
): Promise<PushOutcome[]> {
  const now = context.now()
  const fitting = new Set(jobs.filter(fits))
  const parcels = [...fitting].map((job) => parcelOf(job, context.queues.of(job.queue).values, now))
  const sent = await send(context, parcels)
  return jobs.map((job) => {
    const { id } = job
    const answer = fitting.has(job) ? sent.shift() : 'refused'
    if (answer === 'oversized' || answer === 'unwritable')
      return { status: 'failed', id, error: tooLarge(context.settings.where) }
    if (answer !== 'stored') return { status: 'full', id }
    sourceOf(context, job.queue).pushed()
    return { status: 'pushed', id }
  })
}
