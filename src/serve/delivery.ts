/**
 * A queue delivered to a webhook: a worker that POSTs each job, signed (`signature.ts`).
 *
 *   2xx              done; a JSON answer that can be stored is the job's result
 *   410              given up: the job is dead
 *   429, 503 …       another attempt, after Retry-After where the answer has one
 *   all else         another attempt, after the backoff; so are redirects, no answer, and none in time
 */
import { delayAfter } from '../backoff.ts'
import type { Context } from '../context.ts'
import { encode } from '../encoding.ts'
import { isMillpondError } from '../errors.ts'
import type { Job } from '../job.ts'
import type { Millpond } from '../millpond.ts'
import type { Outcome } from '../outcome.ts'
import type { BackoffPolicy } from '../store.ts'
import { jsonText } from '../web/answer.ts'
import type { Worker } from '../worker.ts'
import { retryAfter } from './retry-after.ts'
import { signatureHeaders } from './signature.ts'
import { version } from './version.ts'

export interface Delivery {
  queue: string
  /** Where to; `https:`, or `http:` on this machine. */
  url: URL
  /** What to sign with, one signature each. */
  keys: readonly Buffer[]
  /** Jobs under way at once. */
  concurrency: number
  /** Milliseconds that a request may take. */
  timeout: number
  /** Tells of attempts that failed; neither secrets nor what the URL asks are in it. */
  onFailure?: (job: { id: string; queue: string; attempt: number }, message: string) => void
}

/** Ten attempts, which is what jobs have unless they say otherwise, span two days, as the specification advises. */
const BACKOFF: BackoffPolicy = { base: 5000, factor: 4, max: 24 * 3_600_000, jitter: 0.5 }
/** Bytes of an answer that may become a result. */
const LONGEST_ANSWER = 64 * 1024

/**
 * @param maxPayload bytes of an encoded result, as the pond has it
 * @returns a worker, which runs until it is closed
 * @throws InvalidName, Closed
 */
export function deliver(pond: Millpond, delivery: Delivery, maxPayload: number): Worker {
  // Computed here, so that the queue's own policy stays as it is for workers of other kinds.
  const backoff = (attempt: number) => delayAfter(BACKOFF, attempt, Math.random())
  const queue = pond.queue(delivery.queue, { retry: { backoff } })
  return queue.work((job, context) => attempt(delivery, job, context, maxPayload), {
    concurrency: delivery.concurrency,
  })
}

/** What the answer holds, or what is to become of the job. @throws Error for another attempt by the backoff */
async function attempt(delivery: Delivery, job: Job, context: Context, maxPayload: number): Promise<unknown> {
  try {
    const response = await post(delivery, job, context.signal)
    const { status } = response
    if (response.ok) return await resultOf(response, maxPayload)
    await discard(response)
    return refused(status, response.headers.get('retry-after'), context)
  } catch (error) {
    const known = error instanceof Refused ? error : new Refused(reason(error, delivery.timeout))
    delivery.onFailure?.({ id: job.id, queue: job.queue, attempt: job.attempt }, known.message)
    throw known.outcome ?? known
  }
}

class Refused extends Error {
  override readonly name = 'WebhookFailed'
  readonly outcome: Outcome | undefined

  constructor(message: string, outcome?: Outcome) {
    super(message)
    this.outcome = outcome
    // Where it was made is of no use to those who read it, and none of their business.
    delete this.stack
  }
}

function post({ url, keys, timeout }: Delivery, job: Job, signal: AbortSignal): Promise<Response> {
  const { id, queue, attempt, attempts, data, trace, pushedAt } = job
  const body = jsonText({ type: queue, timestamp: pushedAt.toISOString(), data, id, attempt, attempts })
  return fetch(url, {
    method: 'POST',
    redirect: 'manual',
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, */*;q=0.1',
      'user-agent': `millpond/${version()}`,
      ...signatureHeaders(keys, id, Math.floor(Date.now() / 1000), body),
      ...(trace === null ? {} : { traceparent: trace }),
    },
    body,
  })
}

function refused(status: number, asked: string | null, context: Context): never {
  const message = `the webhook answered ${status}`
  if (status === 410) throw new Refused(message, context.giveUp(message))
  const delay = asked === null ? undefined : retryAfter(asked, Date.now())
  throw new Refused(message, delay === undefined ? undefined : context.retry(delay, message))
}

/** What is still to come of it is of no use. Never rejects: what the answer said holds, also where its connection broke since. */
async function discard({ body }: Response): Promise<void> {
  await body?.cancel().catch(() => {})
}

/**
 * The JSON of an answer; undefined where there is none, too much of it, or more levels than can be stored. The work is done either way. Never
 * rejects.
 */
async function resultOf(response: Response, maxPayload: number): Promise<unknown> {
  const isJson = /^application\/(?:[^;]+\+)?json\b/i.test(response.headers.get('content-type') ?? '')
  const chunks: Uint8Array[] = []
  let size = 0
  if (!isJson || response.body === null) {
    await discard(response)
    return undefined
  }
  try {
    for await (const chunk of response.body) {
      size += chunk.byteLength
      if (size > LONGEST_ANSWER) return undefined
      chunks.push(chunk)
    }
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    encode(value, 'result', maxPayload)
    return value
  } catch {
    return undefined
  }
}

function reason(error: unknown, timeout: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `the webhook did not answer within ${timeout} ms`
  // It is what the attempt's signal was aborted with.
  if (isMillpondError(error)) return `the attempt was over before the webhook answered: ${error.code}`
  const why = whyUnreached(error)
  return `the webhook could not be reached${why === '' || why.includes('://') ? '' : `: ${why}`}`
}

/** A code: Node has it in the cause, Bun in the error itself. Deno has none, but says it at the end of a message that names the whole URL. */
function whyUnreached(error: unknown): string {
  if (!(error instanceof Error)) return ''
  for (const source of [error.cause, error]) {
    if (source instanceof Error && 'code' in source && typeof source.code === 'string') return source.code
  }
  return error.cause instanceof Error ? (error.cause.message.split(': ').at(-1) ?? '') : ''
}
