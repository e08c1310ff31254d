/** The worker's side: claim, complete, fail, release, extend. */

import { decode, encode, isNestedTooDeep } from '../../values/encoding/encoding.ts'
import { isNotDecodable, MillpondError } from '../../values/errors/errors.ts'
import { HistogramRecorder } from '../../values/figures/histogram.ts'
import { isId } from '../../values/jobs/ids.ts'
import { jobError } from '../../values/jobs/job.ts'
import { logLine } from '../../values/jobs/job-log.ts'
import type { Claimed, ClaimedJob, Encoded, Failure } from '../../values/jobs/records.ts'
import { needs } from '../../values/operations/capabilities.ts'
import { checkQueueName } from '../../values/settings/names.ts'
import { timeText } from '../../values/time/duration.ts'
import { answer } from '../../web/answer.ts'
import { preferredWait } from '../../web/headers.ts'
import { onUnsent } from '../../web/node-request.ts'
import { clientOf, Permits } from '../../web/permits.ts'
import { Refusal, refuseUnknownJob } from '../../web/problem.ts'
import * as schemas from '../api-schemas.ts'
import type { Fitting, Schema } from '../json-schema.ts'
import { type Answer, type Route, type RouteContext, route } from '../route.ts'
import { endingOf, Settlement } from '../settlement.ts'

type ReportedFailure = Omit<Fitting<typeof schemas.failure>, 'fence'>

export function claimRoutes({ store, sweeper, claims, limits, onError }: RouteContext): Route[] {
  const { maxPayload, longPoll } = limits
  const waiting = new Permits(limits.maxWaiting, limits.maxWaitingPerClient)

  return [
    route('POST /v1/queues/{queue}/claims', 'claimJobs', 'Claim jobs to work on', {
      description:
        'Each job comes with a `fence`, which every later word on the claim states. Complete, fail, release or ' +
        'extend it before `leaseUntil`, or another worker gets it. With `Prefer: wait` the answer comes when ' +
        'there is a job.',
      headers: { prefer: schemas.PREFER },
      requiredHeaders: { 'x-requested-with': schemas.REQUESTED_WITH },
      body: schemas.claimRequest,
      bodyOptional: true,
      answers: { 200: { description: 'The jobs, none if there is nothing to do.', schema: schemas.claims } },
      problems: [501, 503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const asked = preferredWait(request)
        const free = asked === undefined ? undefined : waiting.take(clientOf(request))
        const wait = free === undefined ? 0 : Math.min((asked ?? 0) * 1000, longPoll)
        try {
          const { worker = 'http', limit = 1, lease = null, minPriority = 0 } = body
          if (minPriority > 0) needs(store, 'priorities', 'minPriority')
          const claimed = await claims.claim({ queue, worker, limit, lease, minPriority }, wait, request.signal)
          record(queue, claimed)
          const jobs = await readable(queue, claimed)
          const applied = wait === 0 ? {} : { headers: { 'preference-applied': `wait=${Math.ceil(wait / 1000)}` } }
          const response = answer(request, { jobs }, applied)
          // Until here an abort means that the client has left. From here on the signal may be aborted although the answer was sent.
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
      handle: async (queue, id, { fence, result, log }) => {
        const [outcome] = await store.operations.complete({
          queue,
          items: [{ id, fence, result: encodedResult(result, 'result'), ...logOf(log) }],
        })
        return outcome === 'ok' ? { id, outcome: 'done' } : undefined
      },
    }),
    claimRoute('fail', 'failJob', 'The attempt failed', {
      description:
        'Another attempt follows after `retry`, or by the retry policy of the queue (unless set: 1 s doubled with ' +
        'each attempt, an hour at most). With `retry: false`, or when all attempts are used up, the job is dead.',
      body: schemas.failure,
      answer: { description: 'The store knows.', schema: schemas.failedJob },
      handle: async (queue, id, body) => {
        const [outcome = 'stale'] = await fail(queue, [{ id, fence: body.fence, ...failureOf(body) }])
        if (outcome instanceof MillpondError) throw outcome
        return outcome === 'stale' ? undefined : { id, outcome }
      },
    }),
    claimRoute('release', 'releaseJob', 'Give the job back as if it had never been claimed', {
      description:
        "With `rateLimited` it also pauses the job's group, or the queue, for all workers. It counts as no attempt in any case.",
      problems: [404, 409, 501, 503],
      body: schemas.release,
      answer: { description: 'It waits again, in its old place.', schema: schemas.releasedJob },
      handle: async (queue, id, body) => {
        const [outcome] = await store.operations.release({ queue, items: [{ id, ...releaseOf(body) }] })
        return outcome === 'ok' ? { id, outcome: 'waiting' } : undefined
      },
    }),
    claimRoute('extend', 'extendClaim', 'The worker is still at it', {
      description:
        'The claim holds from now for `lease`, never shorter than before. A 409 says that it is over, with `JobCancelled` if that is why.',
      body: schemas.extension,
      answer: { description: 'The claim holds.', schema: schemas.extendedClaim },
      handle: async (queue, id, { fence, lease = null, progress: given, log }) => {
        const progress = given === undefined ? null : encode(given, 'progress', maxPayload)
        const [outcome] = await store.operations.extend({
          queue,
          lease,
          items: [{ id, fence, progress, ...logOf(log) }],
        })
        if (outcome === 'held') {
          throw new MillpondError('StoreBusy', 'another transaction has the job at the moment; nothing was changed')
        }
        if (outcome !== 'cancelled') return outcome === 'ok' ? { id } : undefined
        throw new Refusal(409, 'The job was cancelled. Stop working on it.', { code: 'JobCancelled', members: { id } })
      },
    }),
    route('POST /v1/queues/{queue}/settle', 'settleJobs', 'Complete, fail and release many jobs', {
      description:
        'One outcome for each, in order; one that is stale, or that cannot be stored (`error`), does not spoil ' +
        'the others. `problems` has what was wrong with each `error`. A 503 says that none was stored.',
      body: schemas.settlement,
      answers: { 200: { description: 'What became of each.', schema: schemas.settlementOutcome } },
      problems: [501, 503],
      handle: async ({ params, body, request }) => {
        const queue = checkQueueName(params.queue)
        const idOf = ({ id }: { id: string }) => id.toLowerCase()
        const completions = (body.complete ?? []).map((each, index) =>
          endingOf(idOf(each), (id) => {
            const result = encodedResult(each.result, `result of complete.${index}`)
            return { id, fence: each.fence, result, ...logOf(each.log) }
          }),
        )
        const failures = (body.fail ?? []).map((each) => ({ id: idOf(each), fence: each.fence, ...failureOf(each) }))
        const releases = (body.release ?? []).map((each) => ({ id: idOf(each), ...releaseOf(each) }))
        const settlement = new Settlement((error) => onError(error, request))
        // In one tick, so that stores can do all in one commit.
        const [complete, failed, release] = await Promise.all([
          settlement.tell(completions, (items) => store.operations.complete({ queue, items })),
          settlement.tell(failures, (items) => fail(queue, items)),
          settlement.tell(releases, (items) => store.operations.release({ queue, items })),
        ])
        settlement.assertTaken()
        const { problems } = settlement
        return { complete, fail: failed, release, ...(problems.length > 0 && { problems }) }
      },
    }),
  ]

  /** Null and undefined are no result. @throws PayloadTooLarge, PayloadNotEncodable */
  function encodedResult(value: unknown, what: string): Encoded | null {
    return value === undefined || value === null ? null : encode(value, what, maxPayload)
  }

  /** @throws NotSupported */
  function releaseOf({ fence, rateLimited = 0, log }: Fitting<typeof schemas.release>) {
    if (rateLimited > 0) needs(store, 'rates', 'rateLimited')
    return { fence, pause: rateLimited, ...logOf(log) }
  }

  /** Sweeps when the next attempts are due. Delays by the queue's policy are told by the next claim. */
  async function fail(queue: string, failures: readonly Failure[]) {
    const outcomes = await store.operations.fail({ queue, items: failures })
    for (const { delay } of failures) if (typeof delay === 'number') sweeper.due(delay)
    return outcomes.map((outcome) => {
      if (outcome !== 'full') return outcome
      return new MillpondError('StoreFull', 'the store has no room for a dead job; its claim holds')
    })
  }

  /** Records the waits; only the worker knows how long a job ran. No answer depends on it. */
  function record(queue: string, { now, jobs }: Claimed): void {
    if (jobs.length === 0) return
    const recorder = new HistogramRecorder(queue)
    for (const { priority, dueAt } of jobs) recorder.add(priority, 'wait', Math.max(0, now - dueAt))
    store.operations.record({ slices: recorder.take() }).catch((error: unknown) => onError(error, undefined))
  }

  /** Views of the jobs. Those whose payload cannot be decoded fail, as they would in a worker of ours. An error of the store is ignored. */
  async function readable(queue: string, { now, jobs, lease }: Claimed): Promise<object[]> {
    const views: object[] = []
    for (const claimed of jobs) {
      try {
        views.push(claimView(queue, claimed, now, lease))
      } catch (error) {
        if (!isNotDecodable(error)) throw error
        const { id, fence } = claimed
        // If this fails, the lease expires. The other jobs are claimed in any case.
        await store.operations
          .fail({ queue, items: [{ id, fence, error: jobError(error), delay: 'backoff' }] })
          .catch(() => {})
      }
    }
    return views
  }
}

/** @param now the store's time of the claim @throws PayloadNotDecodable */
function claimView(queue: string, claimed: ClaimedJob, now: number, lease: number): object {
  const { id, fence, attempt, attempts, priority, key, group, timeout, trace } = claimed
  const given = Object.entries({ key, group, timeout, trace }).filter(([, value]) => value !== null)
  const data = decode(claimed.data, `data of job ${id}`)
  // Other programs may have stored it. No answer could be made of it, nor of the jobs beside it.
  if (isNestedTooDeep(data)) throw new MillpondError('PayloadNotDecodable', `data of job ${id} is nested too deep`)
  return {
    ...{ id, queue, fence, attempt, attempts, priority, data },
    pushedAt: timeText(new Date(claimed.pushedAt)),
    dueAt: timeText(new Date(claimed.dueAt)),
    leaseUntil: timeText(new Date(now + lease)),
    ...Object.fromEntries(given),
  }
}

/** A route for one claim, which the path names by its job and the body by its fence. */
function claimRoute<Body>(
  verb: string,
  operation: string,
  summary: string,
  {
    body,
    answer: answered,
    handle,
    ...details
  }: {
    description?: string
    problems?: readonly number[]
    body: Schema<Body>
    answer: Answer
    /** Resolves to the answer; undefined: the claim is over. */
    handle(queue: string, id: string, body: Body): Promise<object | undefined>
  },
): Route {
  return route(`POST /v1/queues/{queue}/jobs/{id}/${verb}`, operation, summary, {
    problems: [404, 409, 503],
    ...details,
    body,
    answers: { 200: answered },
    handle: async ({ params, body }) => {
      const queue = checkQueueName(params.queue)
      if (!isId(params.id)) refuseUnknownJob()
      const id = params.id.toLowerCase()
      const done = await handle(queue, id, body)
      if (done !== undefined) return done
      const detail =
        'The claim is over: its lease ran out, or the job was finished, cancelled or claimed by another. Nothing was changed.'
      throw new Refusal(409, detail, { code: 'StaleAttempt', members: { id } })
    },
  })
}

/** So that two lines with one message and time are two. */
let logged = 0

/** Lines as the store takes them. The attempt is not told by a request, and a store keeps no line twice. */
function logOf(lines: Fitting<typeof schemas.completion>['log']): { log?: string[] } {
  if (lines === undefined) return {}
  return {
    log: lines.map(({ message, fields, at }) => {
      const time = at === undefined ? Date.now() : new Date(at).getTime()
      return logLine({ at: time, attempt: null, n: ++logged }, message, fields)
    }),
  }
}

/** The failure as the store takes it. Without `retry` the delay is by the queue's policy. */
function failureOf({ error = {}, retry, log }: ReportedFailure): Omit<Failure, 'id' | 'fence'> {
  const gaveUp = retry === false
  const reported = new Error(error.message ?? (gaveUp ? 'the worker gave up' : 'the worker failed'))
  reported.name = error.name ?? 'Error'
  // Its own stack would be of this process.
  if (error.stack === undefined) delete reported.stack
  else reported.stack = error.stack
  const delay = gaveUp ? null : (retry ?? 'backoff')
  return { error: { ...jobError(reported), code: gaveUp ? 'GaveUp' : 'HandlerFailed' }, delay, ...logOf(log) }
}
