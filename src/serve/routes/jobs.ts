/** Pushing, following and cancelling. */

import type { PushOptions } from '../../pond/push/options.ts'
import { prefersEvents } from '../../values/encoding/accept.ts'
import { isMillpondError } from '../../values/errors/errors.ts'
import { isId, newId } from '../../values/jobs/ids.ts'
import { defined } from '../../values/options/options.ts'
import { accept } from '../../web/accept.ts'
import { answer, jsonText } from '../../web/answer.ts'
import { findJob, follow } from '../../web/follow.ts'
import { preferredWait, traceParent } from '../../web/headers.ts'
import { derivedId, keyOf, scopeOf } from '../../web/idempotency.ts'
import { clientOf, Permits, setClient } from '../../web/permits.ts'
import { problem, problemOf, Refusal, refuseUnknownJob } from '../../web/problem.ts'
import * as schemas from '../api-schemas.ts'
import { explanation } from '../explanation-schemas.ts'
import { type Fitting, msOf } from '../json-schema.ts'
import { type Route, type RouteContext, route } from '../route.ts'

type NewJobBody = Fitting<typeof schemas.newJob>

const PUSH_HEADERS = { 'idempotency-key': schemas.IDEMPOTENCY_KEY, traceparent: schemas.TRACE }

export function jobRoutes({
  store,
  pond,
  sweeper,
  limits,
  queueLimit,
  acted,
  onError,
  stopping,
}: RouteContext): Route[] {
  const { longPoll, maxWaiting, maxWaitingPerClient } = limits
  const retryAfter = Math.max(1, limits.retryAfter)
  const waiting = new Permits(maxWaiting, maxWaitingPerClient)
  const followers = { maxFollowers: maxWaiting, maxFollowersPerClient: maxWaitingPerClient }
  const following = follow(pond, { log: true, longPoll, ...followers, retryAfter, onError })

  return [
    route('POST /v1/queues/{queue}/jobs', 'pushJob', 'Push a job', {
      description:
        'The store has the job when the answer comes. With `Prefer: wait` the answer is 200 with the whole job if ' +
        'it is final in time, else 202.',
      headers: { prefer: schemas.PREFER, ...PUSH_HEADERS },
      body: schemas.newJob,
      answers: {
        200: { description: 'The job is final.', schema: schemas.job },
        202: {
          description: 'The store has the job.',
          schema: schemas.pushed,
          headers: { location: 'Where it can be followed.' },
        },
      },
      problems: [409, 501, 503],
      handle: async ({ request, params, body }) => {
        const options = pushOptions(body)
        const queue = pond.queue(params.queue)
        await queueLimit.admit(queue.name)
        // If too many wait already, the answer comes at once.
        const permit = preferredWait(request) === undefined ? undefined : waiting.take(clientOf(request))
        const pushing = accept(queue, {
          data: () => body.data,
          push: () => options,
          existing: 'shared',
          location: '/v1/jobs/:id',
          longPoll: permit === undefined ? 0 : longPoll,
          retryAfter,
          onError,
        })
        hint(body)
        try {
          return await pushing(withoutBody(request, permit === undefined ? undefined : stopping))
        } finally {
          permit?.()
        }
      },
    }),
    route('POST /v1/queues/{queue}/batches', 'pushJobs', 'Push many jobs, in order', {
      description:
        'All are checked before any is stored. If the queue is full or the store fails midway, the problem tells ' +
        'with `pushed` how many, counted from the first, the store has, and with `ids` under which all are to be ' +
        'sent again.',
      headers: PUSH_HEADERS,
      body: schemas.newJobs,
      answers: { 202: { description: 'The store has all jobs.', schema: schemas.pushedMany } },
      problems: [409, 501, 503],
      handle: ({ request, params, body }) => pushMany(request, params.queue, body.jobs),
    }),
    route('GET /v1/jobs/{id}', 'followJob', 'Tell of a job', {
      description:
        'At once; when it changes (`Prefer: wait`: its state, or with `If-None-Match` anything); or as ' +
        'server-sent events `state`, `progress`, `done` and `gone`.',
      headers: { prefer: schemas.PREFER, 'if-none-match': schemas.KNOWN_ETAG },
      answers: {
        200: { description: 'The job.', schema: schemas.job, events: true, headers: { etag: 'Changes with the job.' } },
        204: { description: 'To `Last-Event-ID: last`, if the job is final: there will be no more events.' },
        304: { description: 'It is what If-None-Match names.' },
      },
      problems: [404, 503],
      handle: ({ request }) => {
        const waits = preferredWait(request) !== undefined || prefersEvents(request)
        return following(waits ? withoutBody(request, stopping) : request)
      },
    }),
    route('GET /v1/jobs/{id}/explain', 'explainJob', 'Why a job does not run', {
      answers: { 200: { description: 'What holds it back now.', schema: explanation } },
      problems: [404, 501, 503],
      handle: async ({ params }) => {
        const told = isId(params.id) ? await pond.explain(params.id) : undefined
        // MessagePack has other dates.
        return JSON.parse(jsonText(told ?? refuseUnknownJob()))
      },
    }),
    route('DELETE /v1/jobs/{id}', 'cancelJob', 'Cancel a job', {
      description: 'Also a running one: its worker is told when it next speaks of its claim.',
      answers: { 200: { description: 'It is cancelled.', schema: schemas.cancelled } },
      problems: [404, 409, 503],
      handle: async ({ request, params: { id } }) => {
        const answered = await following(request)
        const queue = answered.status === 200 ? (await findJob(pond, id))?.queue : undefined
        if (queue !== undefined) acted(request, { action: 'cancel', queue, id })
        return answered
      },
    }),
    route('PATCH /v1/jobs/{id}', 'updateJob', 'Change a job that does not run yet', {
      description: 'Its data, priority, or when it is due. What is not given stays; the job keeps its place.',
      body: schemas.jobUpdate,
      answers: { 200: { description: 'It is changed.', schema: schemas.updatedJob } },
      problems: [404, 409, 501, 503],
      handle: async ({ request, params, body }) => {
        const job = (await findJob(pond, params.id)) ?? refuseUnknownJob()
        const { runAt, ...change } = body
        const at = runAt === undefined ? undefined : msOf(runAt)
        const outcome = await pond.queue(job.queue).update(job.id, { ...change, ...defined({ runAt: at }) })
        const { id } = job
        if (outcome === undefined) refuseUnknownJob()
        if (outcome === 'updated') {
          acted(request, { action: 'update', queue: job.queue, id })
          return { id, outcome }
        }
        const members = { id, ...defined({ state: outcome }) }
        throw new Refusal(409, `The job stays as it is: it is ${outcome}.`, { code: 'InvalidOption', members })
      },
    }),
    route('DELETE /v1/queues/{queue}/jobs/{id}', 'removeJob', 'Remove a job of any state', {
      description: 'As if it had never been pushed. A claim of it is stale.',
      answers: { 200: { description: 'It is gone.', schema: schemas.removedJob } },
      problems: [404, 501, 503],
      handle: async ({ request, params }) => {
        const queue = pond.queue(params.queue)
        const job = await findJob(pond, params.id)
        if (job === undefined || job.queue !== queue.name) return refuseUnknownJob()
        const { id } = job
        if ((await queue.remove([id])) === 0) refuseUnknownJob()
        acted(request, { action: 'remove', queue: queue.name, id })
        return { id, outcome: 'removed' }
      },
    }),
    route('POST /v1/jobs/{id}/requeue', 'requeueJob', 'Send a dead or cancelled job back to waiting', {
      description: 'With all its attempts.',
      requiredHeaders: { 'x-requested-with': schemas.REQUESTED_WITH },
      body: schemas.nothing,
      bodyOptional: true,
      answers: { 200: { description: 'It waits.', schema: schemas.requeuedJob } },
      problems: [404, 409, 503],
      handle: async ({ request, params }) => {
        const job = await findJob(pond, params.id)
        const { id, state, queue } = job ?? refuseUnknownJob()
        if ((await store.operations.requeue({ ids: [id] })).requeued === 0) {
          const reason = state === 'dead' || state === 'cancelled' ? 'a live job has its key' : `it is ${state}`
          const detail = `The job stays as it is: ${reason}.`
          throw new Refusal(409, detail, { code: 'InvalidOption', members: { id, state } })
        }
        acted(request, { action: 'requeue', queue, id })
        return { id, state: 'waiting' }
      },
    }),
  ]

  /** Makes the sweeper sweep when the job is due. */
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
    const data = jobs.map((job) => job.data)
    const each = (_: unknown, index: number) => ({
      ...pushOptions(jobs[index]),
      ...defined({ trace, id: ids[index] }),
    })
    try {
      return answer(request, { jobs: await queue.pushMany(data, { each }) }, { status: 202 })
    } catch (error) {
      if (!isMillpondError(error) || error.pushed === undefined) throw error
      // The store may have some of the jobs.
      const { pushed } = error
      const { problem: document, isReported } = problemOf(error, limits.retryAfter / 1000)
      if (isReported) onError(error, request)
      const some = `The store has the first ${pushed} of ${ids.length} jobs. Send all again later, each with its id of \`ids\`.`
      const detail = pushed === 0 ? document.detail : some
      return problem({ ...document, detail, members: { ...document.members, pushed, ids } })
    }
  }
}

/** The options of a push, from the body of its request. */
function pushOptions(job: NewJobBody | undefined): PushOptions {
  if (job === undefined) return {}
  const { data: _data, runAt, ...options } = job
  const at = runAt === undefined ? undefined : msOf(runAt)
  return at === undefined ? options : { ...options, runAt: Math.max(0, at) }
}

/**
 * The same request without its body, which has been read.
 * @param stopping also aborts it, so that an answer that waits comes at once
 */
function withoutBody(request: Request, stopping?: AbortSignal): Request {
  const { url, method, headers } = request
  const signal = stopping === undefined ? request.signal : AbortSignal.any([request.signal, stopping])
  const made = new Request(url, { method, headers, signal })
  setClient(made, clientOf(request))
  return made
}
