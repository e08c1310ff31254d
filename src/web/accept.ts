/**
 * A POST becomes a job. A function from Request to Response, so that it runs on every Web-standard server.
 *
 *   guard ─► body ─► data ─► push ─┬─ stored ───────────────────────┬─► 202, Location, { id, state }
 *                                  └─ a job was there ─► existing ──┤
 *                                                         └─► 409   └─ Prefer: wait ─► final in time: 200, the job with its result
 */

import type { Pushed, PushOptions } from '../pond/push/options.ts'
import type { Queue } from '../pond/queue.ts'
import { MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { JobInfo } from '../values/jobs/job.ts'
import { checkOptions, defined, isDuration, isFunction, isInteger, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { answer } from './answer.ts'
import { readBody } from './body.ts'
import { type Bounds, boundBody } from './bound-body.ts'
import { isResponse, type Verdict } from './guard.ts'
import { boundedWait, traceParent } from './headers.ts'
import { derivedId, IDEMPOTENCY_RULES, type IdempotencyOptions, keyOf, sameData, scopeOf } from './idempotency.ts'
import { isFinal, jobView } from './job-view.ts'
import { Permits } from './permits.ts'
import { errorAnswer, type OnError, Refusal, reporter } from './problem.ts'

type MaybePromise<T> = T | Promise<T>

export interface AcceptOptions<Input = unknown> {
  /**
   * Whether the request may push. true: yes; a Response is sent as it is; anything else is a 403. Called before the
   * body is read. Unset: every request may. Here and in the other hooks, `request.formData()`, `request.clone()` and
   * the like keep to `maxBody` and `bodyTimeout`.
   */
  guard?: ((request: Request) => MaybePromise<Verdict>) | undefined
  /**
   * Makes the payload; a Response refuses the request. `body()` reads the body within the limits. Unset: the body is the payload. It should
   * return the same payload for the same request; if it does not, set `idempotency.compare` to false.
   */
  data?: ((request: Request, body: () => Promise<unknown>) => MaybePromise<Input | Response>) | undefined
  /** Options of the push, such as priority, delay, key or group. If they have an `id`, an `Idempotency-Key` is ignored. Unset: none. */
  push?: ((request: Request, data: Input) => MaybePromise<Omit<PushOptions, 'tx'>>) | undefined
  /**
   * Whether the request may see a job that existed already, by the `key` or `id` of `push` or by its `Idempotency-Key`.
   * Anything but true is a 409, which shows nothing of the job. Unset: only a job of the same `Idempotency-Key` and
   * scope is shown. `'shared'`: all clients are one tenant and may see each other's jobs.
   */
  existing?: 'shared' | ((request: Request, job: JobInfo) => MaybePromise<boolean>) | undefined
  /** How the header `Idempotency-Key` is handled; see there for the defaults. */
  idempotency?: IdempotencyOptions | undefined
  /** The `Location` of a job: a path or URL with `:id` in it; `/jobs/:id` unless set. Serve it with `follow`. */
  location?: string | undefined
  /** Most bytes of a body; 0 to 512 MiB, 1 MiB unless set. A larger body is a 413. */
  maxBody?: number | undefined
  /** How long the client may take to send a body; 1 ms to 24 days, 30 s unless set. Then it is a 408. */
  bodyTimeout?: Duration | undefined
  /** Longest wait for a result; 0 to 24 days, 60 s unless set. 0: `Prefer: wait` has no effect. */
  longPoll?: Duration | undefined
  /** Most requests that wait for results at once; 0 to 1,000,000, 1,000 unless set. Further ones are answered 202 at once. */
  maxWaiting?: number | undefined
  /** `Retry-After` of a 503; 1 ms to 24 days, 5 s unless set. Each answer has a random value between this and twice this. */
  retryAfter?: Duration | undefined
  /** Called with errors of the service; the client gets a 500 or 503 without details. Unset: the first one is a process warning. */
  onError?: OnError | undefined
}

const RULES: Rules<AcceptOptions> = {
  guard: isFunction,
  data: isFunction,
  push: isFunction,
  existing: (value) => value === 'shared' || typeof value === 'function' || "'shared' or a function",
  idempotency: (value) => checkOptions(value as IdempotencyOptions, IDEMPOTENCY_RULES, 'idempotency') !== undefined,
  location: (value) => (typeof value === 'string' && value.includes(':id')) || 'a path with :id in it',
  maxBody: isInteger(0, 512 * 1024 * 1024),
  bodyTimeout: isDuration(),
  longPoll: isDuration(0),
  maxWaiting: isInteger(0, 1_000_000),
  retryAfter: isDuration(),
  onError: isFunction,
}

/**
 * A handler that takes POST requests and pushes each as a job. It never rejects: every error is a problem document (RFC 9457) with status
 * 400, 403, 405, 408, 409, 413, 415, 422, 500 or 503.
 * @throws InvalidOption
 */
export function accept<Input>(
  queue: Pick<Queue<Input>, 'name' | 'push' | 'pond'>,
  options?: AcceptOptions<Input>,
): (request: Request) => Promise<Response> {
  const given = checkOptions<AcceptOptions<Input>>(options, RULES, `accept ${queue.name}`)
  const { guard, data, push, idempotency, existing, location = '/jobs/:id' } = given
  const bodyTimeout = milliseconds(given.bodyTimeout ?? '30s', 'bodyTimeout')
  const limits = { maxBody: given.maxBody ?? MAX_PAYLOAD, bodyTimeout }
  const longPoll = milliseconds(given.longPoll ?? '60s', 'longPoll')
  const retryAfter = milliseconds(given.retryAfter ?? '5s', 'retryAfter') / 1000
  const waiting = new Permits(given.maxWaiting ?? 1000)
  const report = reporter(given.onError)
  const { pond } = queue
  const hooked = [guard, data, push, idempotency?.scope, existing].some((hook) => typeof hook === 'function')

  return async (request) => {
    let bounds: Bounds | undefined
    try {
      if (hooked) bounds = boundBody(request, limits)
      return await handle(request, bounds)
    } catch (error) {
      return errorAnswer(bounds?.refusal ?? error, request, retryAfter, report)
    }
  }

  async function handle(request: Request, bounds: Bounds | undefined): Promise<Response> {
    if (request.method !== 'POST') {
      throw new Refusal(405, 'Jobs are pushed with POST.', { headers: { allow: 'POST' } })
    }
    const verdict = guard === undefined || (await guard(request))
    if (isResponse(verdict)) return verdict
    if (verdict !== true) throw new Refusal(403, 'This is not allowed.')
    const key = keyOf(request)
    const made = await payload(request)
    if (isResponse(made)) return made
    const own = await push?.(request, made)
    const isDerived = key !== undefined && own?.id === undefined
    const id = isDerived
      ? derivedId(queue.name, await scopeOf(request, idempotency, existing === 'shared'), key)
      : undefined
    const options = { ...defined({ trace: traceParent(request) }), ...own, ...defined({ id }) }
    // Whatever the hooks made of it: a body that was not read to its end is no payload.
    if (bounds?.refusal) throw bounds.refusal
    const pushed = await queue.push(made, options)
    const job = pushed.existing ? await pond.job(pushed.id) : undefined
    // A job that was replaced has this request's data.
    if (pushed.existing && !pushed.replaced) {
      // Of the same Idempotency-Key and scope, and so of the same client.
      const isOwn = pushed.id === id
      if (!(await mayShow(request, job, isOwn))) {
        throw new Refusal(409, 'There is a job with this key or id already. Nothing was stored.')
      }
      if (job && isOwn && idempotency?.compare !== false && !sameData(job.data, made)) {
        const detail = 'This Idempotency-Key was used with another payload. Nothing was stored.'
        throw new Refusal(422, detail, { code: 'InvalidOption' })
      }
    }
    return respond(request, pushed, job, options)
  }

  async function mayShow(request: Request, job: JobInfo | undefined, isOwn: boolean): Promise<boolean> {
    if (existing === 'shared') return true
    // The hook cannot be asked about a job that has left the store since.
    if (existing === undefined || job === undefined) return isOwn
    return (await existing(request, job)) === true
  }

  async function payload(request: Request): Promise<Input | Response> {
    if (data) return data(request, () => readBody(request, limits))
    const body = await readBody(request, limits)
    if (body === undefined) throw new Refusal(415, 'The request has no Content-Type and no body.')
    // The queue's schema checks it, or else its type is what the caller said it is.
    return body as Input
  }

  /** The job is stored: from here on no answer may make the client send it again. */
  async function respond(request: Request, pushed: Pushed, known: JobInfo | undefined, push: PushOptions) {
    const { id, existing } = pushed
    const waited = await wait(request, id)
    const job = waited?.job ?? known
    const later = (push.delay !== undefined && push.delay !== 0) || Number(push.runAt ?? 0) > Date.now()
    // Whether it is blocked depends on its parents.
    const isOpen = existing || waited !== undefined || (push.after ?? []).length > 0
    const state = job?.state ?? (isOpen ? undefined : later ? 'scheduled' : 'waiting')
    const final = waited !== undefined && job !== undefined && isFinal(job)
    const applied = waited && { 'preference-applied': `wait=${waited.seconds}` }
    const headers = { location: location.replace(':id', id), ...applied }
    return answer(request, final ? jobView({ ...job, log: [] }) : { id, state }, { status: final ? 200 : 202, headers })
  }

  /** @returns undefined if the client asks for no wait, or too many wait already */
  async function wait(request: Request, id: string) {
    const asked = boundedWait(request, longPoll)
    const free = asked && waiting.take()
    if (asked === undefined || free === undefined) return undefined
    const { seconds, ms } = asked
    const { signal } = request
    try {
      const ends = [signal, pond.stopping].filter((one) => one !== undefined)
      await pond.result(id, { timeout: ms, signal: AbortSignal.any(ends) }).catch((error: unknown) => {
        // A failed job is seen below. A client that has left, or a pond that closes, ends the wait.
        if (!isMillpondError(error) && !signal.aborted) report(error, request)
      })
      return { seconds, job: signal.aborted ? undefined : await pond.job(id) }
    } catch (error) {
      if (!isMillpondError(error, 'Closed')) report(error, request)
      return { seconds, job: undefined }
    } finally {
      free()
    }
  }
}
