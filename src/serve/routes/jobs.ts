/** Pushing, following and cancelling. */

import type { PushOptions } from '../../pond/push.ts'
import { isMillpondError } from '../../values/errors.ts'
import { newId } from '../../values/ids.ts'
import { defined } from '../../values/options.ts'
import { accept } from '../../web/accept.ts'
import { answer } from '../../web/answer.ts'
import { clientOf, copyClient } from '../../web/client.ts'
import { follow } from '../../web/follow.ts'
import { preferredWait, prefersEvents, traceParent } from '../../web/headers.ts'
import { derivedId, keyOf, scopeOf } from '../../web/idempotency.ts'
import { problem, troubleOf } from '../../web/problem.ts'
import { Slots } from '../../web/settings.ts'
import * as schemas from '../api-schemas.ts'
import { conflict, unknownJob } from '../refuse.ts'
import { type Route, route } from '../route.ts'
import { type Fitting, string, timeOf } from '../schema.ts'
import { type Parts, PREFER, REQUESTED_WITH } from './parts.ts'

type NewJobBody = Fitting<typeof schemas.newJob>

const IDEMPOTENCY_KEY = string({
  description:
    'Makes the request, sent again, the same job. 1 to 255 visible ASCII characters. Where a job has an id of its own, that counts instead.',
  pattern: '^[!#-+\\-.-~]{1,255}$',
})
const TRACE = string({ description: 'W3C trace context; kept with the job if it is valid.' })
const KNOWN_ETAG = string({ description: 'The ETag of what is known already.' })

export function jobRoutes({ store, pond, sweeper, limits, queueLimit, onError, stopping }: Parts): Route[] {
  const { maxWait, maxWaiting, maxWaitingPerClient } = limits
  const retryAfter = Math.max(1, limits.retryAfter)
  const waiting = new Slots(maxWaiting, maxWaitingPerClient)
  const following = follow(pond, {
    maxWait,
    maxFollowers: maxWaiting,
    maxFollowersPerClient: maxWaitingPerClient,
    retryAfter,
    onError,
  })

  return [
    route({
      method: 'POST',
      path: '/v1/queues/{queue}/jobs',
      id: 'pushJob',
      tag: 'jobs',
      summary: 'Push a job',
      description:
        'The store has the job when the answer comes. With `Prefer: wait` the answer is 200 with the whole job if it is final in time, else 202.',
      headers: { prefer: PREFER, 'idempotency-key': IDEMPOTENCY_KEY, traceparent: TRACE },
      body: { schema: schemas.newJob, required: true },
      answers: {
        200: { description: 'The job is final.', schema: schemas.job },
        202: {
          description: 'The store has the job.',
          schema: schemas.pushed,
          headers: { location: 'Where it can be followed.' },
        },
      },
      problems: [503],
      handle: async ({ request, params, body }) => {
        const options = pushOptions(body)
        const queue = pond.queue(params.queue ?? '')
        await queueLimit.admit(queue.name)
        // Where too many wait already, the answer comes at once.
        const slot = preferredWait(request) === undefined ? undefined : waiting.take(clientOf(request))
        const pushing = accept(queue, {
          data: () => body.data,
          push: () => options,
          existing: 'shared',
          location: '/v1/jobs/:id',
          maxWait: slot === undefined ? 0 : maxWait,
          retryAfter,
          onError,
        })
        hint(body)
        try {
          return await pushing(slot === undefined ? bodiless(request) : stoppedBy(request, stopping))
        } finally {
          slot?.()
        }
      },
    }),
    route({
      method: 'POST',
      path: '/v1/queues/{queue}/batches',
      id: 'pushJobs',
      tag: 'jobs',
      summary: 'Push many jobs, in order',
      description:
        'All are checked before any is stored. If the queue is full or the store fails midway, the problem tells with `pushed` how many, counted from the first, the store has, and with `ids` under which all are to be sent again.',
      headers: { 'idempotency-key': IDEMPOTENCY_KEY, traceparent: TRACE },
      body: { schema: schemas.newJobs, required: true },
      answers: { 202: { description: 'The store has all jobs.', schema: schemas.pushedMany } },
      problems: [503],
      handle: async ({ request, params, body }) => pushMany(request, params.queue ?? '', body.jobs),
    }),
    route({
      method: 'GET',
      path: '/v1/jobs/{id}',
      id: 'followJob',
      tag: 'jobs',
      summary: 'Tell of a job',
      description:
        'At once; when it changes (`Prefer: wait`: its state, or with `If-None-Match` anything); or as server-sent events `state`, `progress`, `done` and `gone`.',
      headers: { prefer: PREFER, 'if-none-match': KNOWN_ETAG },
      answers: {
        200: { description: 'The job.', schema: schemas.job, events: true, headers: { etag: 'Changes with the job.' } },
        204: { description: 'To `Last-Event-ID: last`: there will be no more events.' },
        304: { description: 'It is what If-None-Match names.' },
      },
      problems: [404, 503],
      handle: ({ request }) => following(asksToWait(request) ? stoppedBy(request, stopping) : request),
    }),
    route({
      method: 'DELETE',
      path: '/v1/jobs/{id}',
      id: 'cancelJob',
      tag: 'jobs',
      summary: 'Cancel a job',
      description: 'Also a running one: its worker is told when it next speaks of its claim.',
      answers: { 200: { description: 'It is cancelled.', schema: schemas.cancelled } },
      problems: [404, 409, 503],
      handle: ({ request }) => following(request),
    }),
    route({
      method: 'POST',
      path: '/v1/jobs/{id}/requeue',
      id: 'requeueJob',
      tag: 'jobs',
      summary: 'Send a dead or cancelled job back to waiting',
      description: 'With all its attempts.',
      headers: { 'x-requested-with': REQUESTED_WITH },
      body: { schema: schemas.nothing, required: false },
      answers: { 200: { description: 'It waits.', schema: schemas.requeuedJob } },
      problems: [404, 409, 503],
      handle: async ({ request, params }) => {
        const job = await pond.job(params.id ?? '').catch((error: unknown) => {
          if (!isMillpondError(error, 'InvalidName')) throw error
        })
        if (job === undefined) throw unknownJob()
        const { id, state } = job
        if ((await store.admin.requeue({ ids: [id] })) === 0) {
          const reason = state === 'dead' || state === 'cancelled' ? 'a live job has its key' : `it is ${state}`
          throw conflict('InvalidOption', `The job stays as it is: ${reason}.`, { id, state })
        }
        return answer(request, { id, state: 'waiting' })
      },
    }),
  ]

  /** Due jobs become waiting on time. */
  function hint({ delay, runAt }: NewJobBody): void {
    if (delay !== undefined) sweeper.due(delay)
    else if (runAt !== undefined) sweeper.due(Math.max(0, (msOf(runAt) ?? 0) - Date.now()))
  }

  async function pushMany(request: Request, name: string, jobs: readonly NewJobBody[]): Promise<Response> {
    const queue = pond.queue(name)
    await queueLimit.admit(queue.name)
    const key = keyOf(request)
    const scope = await scopeOf(request, undefined, true)
    const trace = traceParent(request)
    const ids = jobs.map(({ id }, index) => {
      return id ?? (key === undefined ? newId() : derivedId(name, scope, JSON.stringify([key, index])))
    })
    for (const job of jobs) hint(job)
    try {
      const pushed = await queue.pushMany(
        jobs.map(({ data }) => data),
        {
          each: (_, index) => ({ ...pushOptions(jobs[index]), ...defined({ trace, id: ids[index] }) }),
        },
      )
      return answer(request, { jobs: pushed }, { status: 202 })
    } catch (error) {
      if (!isMillpondError(error) || error.pushed === undefined) throw error
      return partial(error, error.pushed, ids, request)
    }
  }

  /** Some of them may be stored, which the client has to know. */
  function partial(error: unknown, pushed: number, ids: readonly string[], request: Request): Response {
    const { problem: told, ours } = troubleOf(error, limits.retryAfter / 1000)
    if (ours) onError(error, request)
    const some = `The store has the first ${pushed} of ${ids.length} jobs. Send all again later, each with its id of \`ids\`.`
    return problem({ ...told, detail: pushed === 0 ? told.detail : some, members: { ...told.members, pushed, ids } })
  }
}

/** Of the envelope, as the queue takes them. */
function pushOptions(job: NewJobBody | undefined): PushOptions {
  if (job === undefined) return {}
  const { data: _data, runAt, ...options } = job
  const at = runAt === undefined ? undefined : msOf(runAt)
  return at === undefined ? options : { ...options, runAt: Math.max(0, at) }
}

function msOf(runAt: number | string): number | undefined {
  return typeof runAt === 'number' ? runAt : timeOf(runAt)
}

/** The body has been read; what is handed on must not look as if it could be read again. */
function bodiless({ url, method, headers, signal }: Request): Request {
  return new Request(url, { method, headers, signal })
}

/** Whether the request asks to wait, or for a stream. */
function asksToWait(request: Request): boolean {
  return preferredWait(request) !== undefined || prefersEvents(request)
}

/** The same request, without its body, whose signal is also aborted by the other one: an answer that waits then comes at once. */
function stoppedBy(request: Request, stopping: AbortSignal): Request {
  const { url, method, headers } = request
  const made = new Request(url, { method, headers, signal: AbortSignal.any([request.signal, stopping]) })
  copyClient(request, made)
  return made
}
