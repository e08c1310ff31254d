/**
 * A queue delivered to a webhook: a worker that POSTs each job, signed (`signature.ts`).
 *
 *   2xx              done; a JSON answer that can be stored is the job's result
 *   410              given up: the job is dead
 *   429              with Retry-After: the job's group, or the queue, pauses for so long, on a store with rates. It counts as no attempt
 *   503 …            another attempt, after Retry-After if the answer has one
 *   anything else    another attempt, after the backoff; also after a redirect, no answer, or a late one
 */

import type { Millpond } from '../pond/millpond.ts'
import { encode } from '../values/encoding/encoding.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import type { Job } from '../values/jobs/job.ts'
import { isError } from '../values/runtime/realms.ts'
import { version } from '../values/runtime/version.ts'
import type { BackoffPolicy } from '../values/settings/backoff.ts'
import { delayAfter } from '../values/settings/backoff.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { jsonText } from '../web/answer.ts'
import { checkPlain } from '../web/body.ts'
import { parseJson } from '../web/json.ts'
import type { Context } from '../worker/context.ts'
import type { Outcome } from '../worker/outcome.ts'
import type { Worker } from '../worker/worker.ts'
import { type Answer, isSuccess, Receiver } from './receiver.ts'
import { retryAfter } from './retry-after.ts'
import { signatureHeaders } from './signature.ts'

/** A queue that is delivered to a webhook. */
export interface Delivery {
  /** The queue's name. */
  queue: string
  /** The receiver: `https:` or `http:`, without user and password. `millpond serve` checks by itself that `http:` leads to this machine. */
  url: URL
  /** Signing keys, as `signingKey` makes them. Each makes one signature, so that a secret can be changed without a gap. */
  keys: readonly Buffer[]
  /** Most requests at once; 1 to 100,000. */
  concurrency: number
  /** Milliseconds that a request may take. */
  timeout: number
  /**
   * Called for each failed attempt, and for each 429 that pauses. The message holds no secrets and no query of the URL.
   * Unset: for failures a process warning, as for any job.
   */
  onFailure?: ((job: { id: string; queue: string; attempt: number }, message: string) => void) | undefined
}

/** `rates`: whether the store has them. */
type Terms = Delivery & { receiver: Receiver; maxPayload: number; rates: boolean }

/** With this backoff ten attempts, the default, take about two days, as the Standard Webhooks specification advises. */
const BACKOFF: BackoffPolicy = DEFAULTS.webhook.backoff

/**
 * @param maxPayload most bytes of an encoded result, as of the pond
 * @returns the worker; and what closes the connections to the receiver, to be called once the worker is closed
 * @throws InvalidName, InvalidOption, Closed
 */
export function deliver(
  pond: Millpond,
  delivery: Delivery,
  maxPayload: number,
): { worker: Worker; disconnect: () => void } {
  const { url, timeout, concurrency } = delivery
  const receiver = new Receiver(url, timeout, concurrency)
  // A function, so that the queue's own policy stays as it is for other workers.
  const backoff = (attempt: number) => delayAfter(BACKOFF, attempt, Math.random())
  const queue = pond.queue(delivery.queue, { retry: { backoff } })
  const terms = { ...delivery, receiver, maxPayload, rates: pond.store.capabilities.rates }
  const worker = queue.work((job, context) => attempt(terms, job, context), { concurrency })
  return { worker, disconnect: () => receiver.close() }
}

/** @returns the job's result @throws an outcome of the job, or an Error for another attempt by the backoff */
async function attempt(terms: Terms, job: Job, context: Context): Promise<unknown> {
  const { receiver, keys, maxPayload, rates, timeout, onFailure } = terms
  try {
    const answer = await post(receiver, keys, job, context.signal)
    if (isSuccess(answer.status)) return resultOf(answer, maxPayload)
    throw refused(answer, rates, context)
  } catch (error) {
    const known = error instanceof Refused ? error : new Refused(reason(error, timeout))
    onFailure?.({ id: job.id, queue: job.queue, attempt: job.attempt }, known.message)
    throw known.outcome ?? known
  }
}

class Refused extends Error {
  override readonly name = 'WebhookFailed'
  readonly outcome: Outcome | undefined

  constructor(message: string, outcome?: Outcome) {
    super(message)
    this.outcome = outcome
    // It is kept with the job, and would only show our code.
    delete this.stack
  }
}

function post(receiver: Receiver, keys: readonly Buffer[], job: Job, signal: AbortSignal): Promise<Answer> {
  const { headers, body } = webhookRequest(keys, job, Math.floor(Date.now() / 1000))
  return receiver.post({ ...headers, 'user-agent': `millpond/${version()}` }, body, signal)
}

/**
 * What is sent for a job, but for `user-agent`; `contract/vectors/wire/webhook.json` has cases.
 * @param seconds since 1970, of this attempt
 */
export function webhookRequest(keys: readonly Buffer[], job: Job, seconds: number) {
  const { id, queue, attempt, attempts, data, trace, pushedAt } = job
  const body = jsonText({ type: queue, timestamp: pushedAt.toISOString(), data, id, attempt, attempts })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, */*;q=0.1',
    'accept-encoding': 'identity',
    ...signatureHeaders(keys, id, seconds, body),
    ...(trace !== null && { traceparent: trace }),
  }
  return { headers, body }
}

function refused({ status, headers }: Answer, rates: boolean, context: Context): Refused {
  const message = `the webhook answered ${status}`
  if (status === 410) return new Refused(message, context.giveUp(message))
  const delay = retryAfter(headers['retry-after'] ?? '', Date.now())
  if (delay === undefined) return new Refused(message)
  if (status !== 429 || !rates) return new Refused(message, context.retry(delay, message))
  return new Refused(`${message} and asked for a pause; it counts as no attempt`, context.rateLimited(delay))
}

/**
 * The JSON of an answer. Undefined if there is none, too much, or it cannot be stored as it is or is not plain: the
 * work is done in any case.
 */
function resultOf({ headers, body }: Answer, maxPayload: number): unknown {
  const isJson = /^application\/(?:[^;]+\+)?json\b/i.test(headers['content-type'] ?? '')
  const coding = headers['content-encoding'] ?? 'identity'
  if (body === undefined || !isJson || coding.trim().toLowerCase() !== 'identity') return undefined
  try {
    const value = parseJson(body.toString('utf8'))
    checkPlain(value)
    encode(value, 'result', maxPayload)
    return value
  } catch {
    return undefined
  }
}

function reason(error: unknown, timeout: number): string {
  if (isError(error) && error.name === 'TimeoutError') return `the webhook did not answer within ${timeout} ms`
  // The reason of the attempt's signal.
  if (isMillpondError(error)) return `the attempt was over before the webhook answered: ${error.code}`
  const code = isError(error) && 'code' in error && typeof error.code === 'string' ? `: ${error.code}` : ''
  // Without the message: some messages name the whole URL.
  return `the webhook could not be reached${code}`
}
