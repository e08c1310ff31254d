/** `GET` of a pond's metrics, for Prometheus. */
import { CONTENT_TYPE } from '../metrics/exposition.ts'
import { PondMetrics } from '../metrics/index.ts'
import type { Millpond } from '../pond/millpond.ts'
import { checkOptions, isFunction, isInteger, type Rules } from '../values/options/options.ts'
import { isResponse, type Verdict } from './guard.ts'
import { errorAnswer, type OnError, Refusal, reporter } from './problem.ts'

/** Queues that have series of their own, unless set. */
const MAX_QUEUES = 100

export interface MetricsOptions {
  /**
   * Whether the request may see the metrics. true: yes; a Response is sent as it is; anything else is a 403. Unset: every client may. The
   * metrics hold names of queues and figures.
   */
  guard?: ((request: Request) => Verdict | Promise<Verdict>) | undefined
  /**
   * Most queues with series of their own; 0 to 10,000, 100 unless set. The depths, ages and workers of further queues are
   * summed as `queue="_other"`.
   */
  maxQueues?: number | undefined
  /** Called with errors of the service. Unset: the first one is a process warning. */
  onError?: OnError | undefined
}

const RULES: Rules<MetricsOptions> = { guard: isFunction, maxQueues: isInteger(0, 10_000), onError: isFunction }
/** Seconds. */
const RETRY_AFTER = 5

/**
 * A handler for `/metrics`. A scrape makes two calls to the store, whose cost does not grow with the jobs, and at most once a second. It
 * never rejects: every error is a problem document (RFC 9457) with status 403, 405, 500 or 503.
 * @throws InvalidOption
 */
export function metrics(pond: Millpond, options?: MetricsOptions): (request: Request) => Promise<Response> {
  const { guard, maxQueues = MAX_QUEUES, onError } = checkOptions(options, RULES, 'metrics')
  const report = reporter(onError)
  const own = new PondMetrics(pond, maxQueues, (error) => report(error, undefined))

  async function handle(request: Request): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new Refusal(405, 'Metrics can be read with GET.', { headers: { allow: 'GET, HEAD' } })
    }
    const verdict = guard === undefined || (await guard(request))
    if (isResponse(verdict)) return verdict
    if (verdict !== true) throw new Refusal(403, 'This is not allowed.')
    return metricsAnswer(own, request)
  }

  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      return errorAnswer(error, request, RETRY_AFTER, report)
    }
  }
}

export async function metricsAnswer(metrics: PondMetrics, request: Request): Promise<Response> {
  const bytes = Buffer.from(await metrics.text())
  const headers = { 'content-type': CONTENT_TYPE, 'content-length': String(bytes.length), 'cache-control': 'no-store' }
  return new Response(request.method === 'HEAD' ? null : bytes, { headers })
}
