/** The worker's side: claim, complete, fail, release, extend. */

import type { Claimed, Encoded, Failure, JobError } from '../../store.ts'
import { encode } from '../../values/encoding.ts'
import { isMillpondError } from '../../values/errors.ts'
import { HistogramRecorder } from '../../values/histogram.ts'
import { checkId } from '../../values/ids.ts'
import { jobError } from '../../values/job.ts'
import { checkQueueName } from '../../values/names.ts'
import { defined } from '../../values/options.ts'
import { answer } from '../../web/answer.ts'
import { clientOf } from '../../web/client.ts'
import { preferredWait } from '../../web/headers.ts'
import { onUnsent } from '../../web/incoming.ts'
import { Slots } from '../../web/settings.ts'
import * as schemas from '../api-schemas.ts'
import { conflict, unknownJob } from '../refuse.ts'
import { type Answer, type Route, route } from '../route.ts'
import type { Fitting, Schema } from '../schema.ts'
import { claimView } from '../views.ts'
import { type Parts, PREFER, REQUESTED_WITH } from './parts.ts'

type ReportedFailure = Omit<Fitting<typeof schemas.failure>, 'fence'>

export function claimRoutes({ store, sweeper, claims, limits, onError }: Parts): Route[] {
  const { maxPayload, maxWait } = limits
  const waiting = new Slots(limits.maxWaiting, limits.maxWaitingPerClient)

  return [
    route({
      method: 'POST',
      path: '/v1/queues/{queue}/claims',
      id: 'claimJobs',
      tag: 'claims',
      summary: 'Claim jobs to work on',
      description:
        'Each job comes with a `fence`, which every later word on the claim states. Complete, fail, release or extend it before `leaseUntil`, or another worker gets it. With `Prefer: wait` the answer comes when there is a job.',
      headers: { prefer: PREFER, 'x-requested-with': REQUESTED_WITH },
      body: { schema: schemas.claimRequest, required: false },
      answers: { 200: { description: 'The jobs, none if there is nothing to do.', schema: schemas.claims } },
      problems: [503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const asked = preferredWait(request)
        const free = asked === undefined ? undefined : waiting.take(clientOf(request))
        const wait = free === undefined ? 0 : Math.min((asked ?? 0) * 1000, maxWait)
        try {
          const { worker = 'http', limit = 1, lease = null } = body
          const claimed = await claims.claim({ queue, worker, limit, lease }, wait, request.signal)
          record(queue, claimed)
          const jobs = await readable(queue, claimed)
          const applied = wait === 0 ? {} : { headers: { 'preference-applied': `wait=${Math.ceil(wait / 1000)}` } }
          const response = answer(request, { jobs }, applied)
          // So far an abort says that nobody waits for the answer. From now on it may come of an answer that was sent.
          if (request.signal.aborted) await claims.giveBack(queue, claimed.jobs)
          else onUnsent(request, () => void claims.giveBack(queue, claimed.jobs))
          return response
        } finally {
          free?.()
        }
      },
    }),
    claimRoute('complete', 'completeJob', 'The job is done', {
      body: schemas.completion,
      answer: { description: 'The store knows.', schema: schemas.completedJob },
      handle: async (queue, id, { fence, result }) => {
        const [outcome] = await store.complete(queue, [{ id, fence, result: encodedResult(result, 'result') }])
        return outcome === 'ok' ? { id, outcome: 'done' } : undefined
      },
    }),
    claimRoute('fail', 'failJob', 'The attempt failed', {
      description:
        'Another attempt follows after `retry`, or by the retry policy of the queue (unless set: 1 s doubled with each attempt, an hour at most). With `retry: false`, or when all attempts are used up, the job is dead.',
      body: schemas.failure,
      answer: { description: 'The store knows.', schema: schemas.failedJob },
      handle: async (queue, id, body) => {
        const [outcome = 'stale'] = await fail(queue, [{ id, fence: body.fence, ...failureOf(body) }])
        return outcome === 'stale' ? undefined : { id, outcome }
      },
    }),
    claimRoute('release', 'releaseJob', 'Give the job back as if it had never been claimed', {
      body: schemas.release,
      answer: { description: 'It waits again, in its old place.', schema: schemas.releasedJob },
      handle: async (queue, id, { fence }) => {
        const [outcome] = await store.release(queue, [{ id, fence }])
        return outcome === 'ok' ? { id, outcome: 'waiting' } : undefined
      },
    }),
    claimRoute('extend', 'extendClaim', 'The worker is still at it', {
      description:
        'The claim holds from now for `lease`, never shorter than before. A 409 says that it is over, with `JobCancelled` if that is why.',
      body: schemas.extension,
      answer: { description: 'The claim holds.', schema: schemas.extendedClaim },
      handle: async (queue, id, { fence, lease = null, progress: told }) => {
        const progress = told === undefined ? null : encode(told, 'progress', maxPayload)
        const [outcome] = await store.extend(queue, lease, [{ id, fence, progress }])
        if (outcome === 'cancelled')
          throw conflict('JobCancelled', 'The job was cancelled. Stop working on it.', { id })
        return outcome === 'ok' ? { id } : undefined
      },
    }),
    route({
      method: 'POST',
      path: '/v1/queues/{queue}/settle',
      id: 'settleJobs',
      tag: 'claims',
      summary: 'Complete, fail and release many jobs',
      description: 'One outcome for each, in order; one that is stale does not spoil the others.',
      body: { schema: schemas.settlement, required: true },
      answers: { 200: { description: 'What became of each.', schema: schemas.settlementOutcome } },
      problems: [503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const completions = (body.complete ?? []).map(({ id, fence, result }, index) => {
          return { id: id.toLowerCase(), fence, result: encodedResult(result, `result of complete.${index}`) }
        })
        const failures = (body.fail ?? []).map((each) => {
          return { id: each.id.toLowerCase(), fence: each.fence, ...failureOf(each) }
        })
        const releases = (body.release ?? []).map(({ id, fence }) => ({ id: id.toLowerCase(), fence }))
        // In one turn, so that stores can do all in one commit.
        const [completed, failed, released] = await Promise.all([
          completions.length === 0 ? [] : store.complete(queue, completions),
          failures.length === 0 ? [] : fail(queue, failures),
          releases.length === 0 ? [] : store.release(queue, releases),
        ])
        return answer(request, { complete: completed, fail: failed, release: released })
      },
    }),
  ]

  /** Null and nothing are the same: no result. @throws PayloadTooLarge, PayloadNotEncodable */
  function encodedResult(value: unknown, what: string): Encoded | null {
    return value === undefined || value === null ? null : encode(value, what, maxPayload)
  }

  /** The next attempts are swept in time; of those by the queue's policy the next sweep learns by itself. */
  async function fail(queue: string, failures: readonly Failure[]) {
    const outcomes = await store.fail(queue, failures)
    for (const { delay } of failures) if (typeof delay === 'number') sweeper.due(delay)
    return outcomes
  }

  /** The waits; how long jobs ran is known only to those who ran them. Nobody's answer hangs on it. */
  function record(queue: string, { now, jobs }: Claimed): void {
    if (jobs.length === 0) return
    const recorder = new HistogramRecorder(queue)
    for (const { priority, dueAt } of jobs) recorder.add(priority, 'wait', Math.max(0, now - dueAt))
    store.record(recorder.take()).catch((error: unknown) => onError(error, undefined))
  }

  /** Jobs whose payload nobody can read fail as they would in a worker of ours; the others are handed out. Never rejects for the store. */
  async function readable(queue: string, { now, jobs, lease }: Claimed): Promise<Record<string, unknown>[]> {
    const views: Record<string, unknown>[] = []
    for (const claimed of jobs) {
      try {
        views.push(claimView(queue, claimed, now, lease))
      } catch (error) {
        if (!isMillpondError(error, 'PayloadNotDecodable')) throw error
        const { id, fence } = claimed
        // If the store does not hear of it the lease runs out. The others are claimed, whatever becomes of this one.
        await store.fail(queue, [{ id, fence, error: jobError(error), delay: 'backoff' }]).catch(() => {})
      }
    }
    return views
  }
}

interface ClaimRoute<Body> {
  description?: string
  body: Schema<Body>
  answer: Answer
  /** Resolves to the answer; undefined: the claim is over. */
  handle(queue: string, id: string, body: Body): Promise<Record<string, unknown> | undefined>
}

/** A route for one claim, named by its job's path and the fence in the body. */
function claimRoute<Body>(verb: string, operation: string, summary: string, given: ClaimRoute<Body>): Route {
  return route({
    method: 'POST',
    path: `/v1/queues/{queue}/jobs/{id}/${verb}`,
    id: operation,
    tag: 'claims',
    summary,
    ...defined({ description: given.description }),
    body: { schema: given.body, required: true },
    answers: { 200: given.answer },
    problems: [404, 409, 503],
    handle: async ({ request, params, body }) => {
      const { queue, id } = claimOf(params)
      const told = await given.handle(queue, id, body)
      if (told === undefined) throw stale(id)
      return answer(request, told)
    },
  })
}

/** As the store takes it. Where no delay is told it is for the queue's policy. */
function failureOf({ error = {}, retry }: ReportedFailure): { error: JobError; delay: Failure['delay'] } {
  const gaveUp = retry === false
  const reported = new Error(error.message ?? (gaveUp ? 'the worker gave up' : 'the worker failed'))
  reported.name = error.name ?? 'Error'
  // Ours would tell of this process.
  if (error.stack === undefined) delete reported.stack
  else reported.stack = error.stack
  const delay = gaveUp ? null : (retry ?? 'backoff')
  return { error: { ...jobError(reported), code: gaveUp ? 'GaveUp' : 'HandlerFailed' }, delay }
}

/** @throws InvalidName for a queue, Refusal for an id that is none: nothing has it */
function claimOf(params: Readonly<Record<string, string>>): { queue: string; id: string } {
  const queue = checkQueueName(params.queue)
  try {
    return { queue, id: checkId(params.id) }
  } catch {
    throw unknownJob()
  }
}

function stale(id: string): Error {
  const detail =
    'The claim is over: its lease ran out, or the job was finished, cancelled or claimed by another. Nothing was changed.'
  return conflict('StaleAttempt', detail, { id })
}
