/**
 * A job by its id. `GET` answers with the job: at once, when it changes (`Prefer: wait`), or as server-sent events. `DELETE` cancels it.
 * A function from Request to Response, so that it runs on every Web-standard server.
 */

import type { JobReader } from '../pond/internals.ts'
import type { Millpond } from '../pond/millpond.ts'
import { preferredFormat, prefersEvents } from '../values/encoding/accept.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { JobInfo } from '../values/jobs/job.ts'
import { checkOptions, isBoolean, isDuration, isFunction, isInteger, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds, timeText } from '../values/time/duration.ts'
import { answer, encodedAnswer } from './answer.ts'
import { eventStream, LAST_EVENT_ID } from './event-stream.ts'
import { ExpectedStarts } from './expected-start.ts'
import { isResponse, type Verdict } from './guard.ts'
import { boundedWait, header } from './headers.ts'
import { isFinal } from './job-view.ts'
import { clientOf, Permits } from './permits.ts'
import { errorAnswer, type OnError, Refusal, refuseUnknownJob, reporter, retryAfterHeader } from './problem.ts'
import { rendered } from './rendered-job.ts'
import { Watcher } from './watcher.ts'

export interface FollowOptions {
  /**
   * Whether the request may see this job, or with DELETE cancel it. true: yes; a Response is sent as it is; anything
   * else is a 404, as if there were no such job. Unset: every client that knows the id may. An id has 74 random bits,
   * but an id derived from an `Idempotency-Key` has none.
   */
  guard?: ((request: Request, job: JobInfo) => Verdict | Promise<Verdict>) | undefined
  /** Whether what handlers have logged is shown, too; false unless set, as it is mostly not written for clients. */
  log?: boolean | undefined
  /** The job id of a request; the last segment of its path unless set. undefined: 404. */
  id?: ((request: Request) => string | undefined) | undefined
  /** Longest wait of a long poll; 0 to 24 days, 60 s unless set. 0: `Prefer: wait` has no effect. */
  longPoll?: Duration | undefined
  /**
   * Most long polls and event streams at once; 0 to 1,000,000, 1,000 unless set. Further polls are answered at once,
   * further streams get a 503.
   */
  maxFollowers?: number | undefined
  /**
   * Most of them for one client; 0 to 1,000,000, `maxFollowers` unless set. A client is the address of a connection,
   * known behind `toNode` and `toFastify` only. Behind a proxy all clients count as one.
   */
  maxFollowersPerClient?: number | undefined
  /** Time between heartbeats on an event stream without events; 10 ms to 24 days, 15 s unless set. */
  heartbeat?: Duration | undefined
  /** How long an event stream may last; 10 ms to 24 days, 1 h unless set. */
  maxStream?: Duration | undefined
  /** `Retry-After` of a 503; 1 ms to 24 days, 5 s unless set. Each answer has a random value between this and twice this. */
  retryAfter?: Duration | undefined
  /** Called with errors of the service; the client gets a 500 or 503 without details. Unset: the first one is a process warning. */
  onError?: OnError | undefined
}

const RULES: Rules<FollowOptions> = {
  guard: isFunction,
  log: isBoolean,
  id: isFunction,
  longPoll: isDuration(0),
  maxFollowers: isInteger(0, 1_000_000),
  maxFollowersPerClient: isInteger(0, 1_000_000),
  heartbeat: isDuration(10),
  maxStream: isDuration(10),
  retryAfter: isDuration(),
  onError: isFunction,
}

/**
 * A handler for `/jobs/:id`. It never rejects: every error is a problem document (RFC 9457) with status 404, 405, 409, 500 or 503.
 * @throws InvalidOption
 */
export function follow(
  pond: Pick<Millpond, 'job' | 'cancel' | 'queue' | 'on'> & Pick<JobReader, 'result' | 'stopping'>,
  options?: FollowOptions,
): (request: Request) => Promise<Response> {
  const given = checkOptions(options, RULES, 'follow')
  const { guard, id: idOf = lastSegment } = given
  const longPoll = milliseconds(given.longPoll ?? '60s', 'longPoll')
  const heartbeat = milliseconds(given.heartbeat ?? '15s', 'heartbeat')
  const lifetime = milliseconds(given.maxStream ?? '1h', 'maxStream')
  const retryAfter = milliseconds(given.retryAfter ?? '5s', 'retryAfter') / 1000
  const permits = new Permits(given.maxFollowers ?? 1000, given.maxFollowersPerClient)
  const report = reporter(given.onError)
  const reader = given.log === true ? pond : withoutLogs(pond)
  const watcher = new Watcher(reader)
  const starts = new ExpectedStarts(pond)
  const expectedStarts = new WeakMap<JobInfo, Promise<string | undefined>>()

  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      return errorAnswer(error, request, retryAfter, report)
    }
  }

  async function handle(request: Request): Promise<Response> {
    const { method } = request
    if (method !== 'GET' && method !== 'HEAD' && method !== 'DELETE') {
      const headers = { allow: 'GET, HEAD, DELETE' }
      throw new Refusal(405, 'A job can be read with GET and cancelled with DELETE.', { headers })
    }
    const id = idOf(request)
    const job = (id === undefined ? undefined : await findJob(reader, id)) ?? refuseUnknownJob()
    const verdict = guard === undefined || (await guard(request, job))
    if (isResponse(verdict)) return verdict
    if (verdict !== true) refuseUnknownJob()
    if (method === 'DELETE') return cancel(request, job)
    const shown = await show(request, job)
    return method === 'HEAD' ? new Response(null, { status: shown.status, headers: shown.headers }) : shown
  }

  async function show(request: Request, job: JobInfo): Promise<Response> {
    if (request.method === 'GET' && prefersEvents(request)) return stream(request, job)
    const known = header(request, 'if-none-match')
    const polled = await poll(request, job, known)
    const now = polled?.job ?? job
    const { tag } = rendered(now)
    const headers = { etag: tag, ...(polled && { 'preference-applied': `wait=${polled.seconds}` }) }
    if (!matches(known, tag)) {
      const format = preferredFormat(request.headers.get('accept'))
      return encodedAnswer(format, rendered(now).body(format, await expectedStart(now)), { headers })
    }
    return new Response(null, { status: 304, headers: { ...headers, 'cache-control': 'no-store' } })
  }

  /** The same for all who are shown the same look, so that it is rendered once. */
  function expectedStart(job: JobInfo): Promise<string | undefined> {
    const known = expectedStarts.get(job) ?? starts.of(job).then((start) => start && timeText(start))
    expectedStarts.set(job, known)
    return known
  }

  /** Waits until the job differs from the one that the client has (`If-None-Match`), or, without that header, until its state changes. */
  async function poll(request: Request, first: JobInfo, known: string | undefined) {
    const asked = boundedWait(request, longPoll)
    if (asked === undefined || request.method === 'HEAD') return undefined
    const { seconds, ms } = asked
    const isNews = (job: JobInfo) =>
      isFinal(job) || (known === undefined ? job.state !== first.state : !matches(known, rendered(job).tag))
    if (isNews(first)) return { seconds, job: first }
    const free = permits.take(clientOf(request))
    if (free === undefined) return undefined
    const { promise, resolve, reject } = Promise.withResolvers<JobInfo | undefined>()
    let last: JobInfo | undefined = first
    const enough = () => resolve(last)
    const timer = setTimeout(enough, ms)
    const signal = ending(request)
    signal.addEventListener('abort', enough)
    const seen = (job: JobInfo | undefined) => {
      last = job
      if (job === undefined || isNews(job)) resolve(job)
    }
    const unfollow = watcher.follow(first.id, { seen, failed: reject })
    if (signal.aborted) enough()
    try {
      return { seconds, job: (await promise) ?? refuseUnknownJob() }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', enough)
      unfollow()
      free()
    }
  }

  function stream(request: Request, job: JobInfo): Response {
    // A browser reconnects after the last event; a 204 tells it to stop. A job that was requeued since goes on.
    if (header(request, 'last-event-id') === LAST_EVENT_ID && isFinal(job)) return new Response(null, { status: 204 })
    const free = permits.take(clientOf(request))
    if (free === undefined) {
      const detail = 'Too many follow jobs at present. Come back later, or ask without waiting.'
      throw new Refusal(503, detail, { headers: retryAfterHeader(retryAfter) })
    }
    const ended = (error?: unknown) => {
      free()
      if (error !== undefined && !isMillpondError(error, 'Closed')) report(error, request)
    }
    const body = eventStream(job, { watcher, signal: ending(request), heartbeat, lifetime, expectedStart, ended })
    const headers = {
      'content-type': 'text/event-stream',
      // A middleware that compresses would hold events back until it has enough of them.
      'cache-control': 'no-store, no-transform',
      vary: 'accept, prefer',
      // Without it some proxies hold events back until their buffer is full.
      'x-accel-buffering': 'no',
    }
    return new Response(body, { headers })
  }

  /** Aborted when the client is gone and when the pond begins to close. */
  function ending({ signal }: Request): AbortSignal {
    return AbortSignal.any([signal, pond.stopping].filter((one) => one !== undefined))
  }

  async function cancel(request: Request, { id }: JobInfo): Promise<Response> {
    const state = await pond.cancel(id)
    if (state === undefined) refuseUnknownJob()
    if (state === 'cancelled') return answer(request, { id, state })
    const detail = `The job is ${state} already and cannot be cancelled any more.`
    throw new Refusal(409, detail, { members: { id, state } })
  }
}

type Read = ConstructorParameters<typeof Watcher>[0]

function withoutLogs(pond: Read): Read {
  return {
    on: pond.on.bind(pond),
    result: (id, options) => pond.result(id, options),
    async job(id) {
      const job = await pond.job(id)
      return job && { ...job, log: [] }
    },
  }
}

/** The job; undefined also for a malformed id, which no job has. */
export async function findJob(pond: Pick<Millpond, 'job'>, id: string): Promise<JobInfo | undefined> {
  return pond.job(id).catch((error: unknown) => {
    if (!isMillpondError(error, 'InvalidName')) throw error
    return undefined
  })
}

function lastSegment(request: Request): string | undefined {
  return new URL(request.url).pathname.split('/').at(-1)
}

/** `If-None-Match`, by weak comparison (RFC 9110, section 13.1.2). */
function matches(known: string | undefined, tag: string): boolean {
  const tags = known?.split(',').map((one) => one.trim()) ?? []
  return tags.some((one) => one === '*' || one === tag || `W/${one}` === tag)
}
