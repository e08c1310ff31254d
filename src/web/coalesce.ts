/**
 * Identical GET and HEAD requests share one run of the handler and one rendered answer. The rules are in
 * `request-rules.ts` and `response-rules.ts`.
 */

import { MillpondError } from '../values/errors/errors.ts'
import { checkOptions, isDuration, isFunction, isInteger, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds, shown } from '../values/time/duration.ts'
import { isHeaderName, RequestRules } from './request-rules.ts'
import { SharedResponses, type SharingCounts } from './shared-responses.ts'

/**
 * The key of a request. Requests are identical if they have the same key, the same method, and the same values of the headers that answers
 * differ by (`vary`, and `Vary` of the answer).
 *
 * A text is for requests that name no user. For requests that do, list the headers that the key accounts for:
 * `{ key: `${user} ${url}`, covers: ['cookie'] }`. undefined: this request shares nothing.
 */
export type ResponseKey = string | { key: string; covers: readonly string[] } | undefined

export interface CoalesceResponsesOptions {
  /**
   * The key of a request; its URL unless set. The host that the request names is part of any key, unless `ignore` or `covers` has `Host`: a
   * client may name any.
   */
  key?: ((request: Request) => ResponseKey) | undefined
  /** How long an answer is reused; 0 to 24 days, 0 unless set: only requests at the same time share it. `Cache-Control` may shorten it. */
  ttl?: Duration | undefined
  /** How long requests wait for a shared run of the handler; 1 ms to 24 days, 30 s unless set. Then they get a 503. */
  timeout?: Duration | undefined
  /**
   * Further request headers that answers differ by, such as `X-Tenant`: their values become part of the key. None unless set.
   *
   * A header that is in none of `vary`, `ignore`, the `covers` of `key` and the list of docs/coalesce.md makes its
   * request personal: the request shares nothing.
   */
  vary?: readonly string[] | undefined
  /** Further request headers that no answer depends on, such as the request id of a proxy. None unless set. */
  ignore?: readonly string[] | undefined
  /** Headers of that list that name a user to this service after all, such as `X-Real-IP`. None unless set. */
  personal?: readonly string[] | undefined
  /** Largest shared body, in bytes; 0 to 1 GiB, 1 MiB unless set. */
  maxBody?: number | undefined
  /** Most answers kept for reuse; 1 to 10,000,000, 1,000 unless set. Beyond it the oldest are removed. */
  maxEntries?: number | undefined
  /** Most bytes of all answers kept for reuse; at least 1, 64 MiB unless set. Beyond it the oldest are removed. */
  maxBytes?: number | undefined
}

export interface ResponseCounts extends SharingCounts {
  /** Request headers that made requests personal, at most 20. Such requests ran alone. */
  personal: readonly string[]
}

export interface CoalescedResponses {
  /**
   * Answers with the result of `next`, its own or a shared one.
   * @throws InvalidOption (`key` returned something else), and what `next` throws: all waiting requests get it
   */
  (request: Request, next: () => Response | Promise<Response>): Promise<Response>
  /** Forgets the answers kept for this key: a URL, unless `key` was set. Later requests do not share a run under way either. */
  clear(key: string): void
  /** The same for every key. */
  clearAll(): void
  /** Counts since the function was made, and what is kept now. */
  stats(): ResponseCounts
}

const areNames = (value: unknown) =>
  (Array.isArray(value) && value.every((name) => typeof name === 'string' && isHeaderName(name))) ||
  'an array of header names'

const RULES: Rules<CoalesceResponsesOptions> = {
  key: isFunction,
  ttl: isDuration(0),
  timeout: isDuration(),
  vary: areNames,
  ignore: areNames,
  personal: areNames,
  maxBody: isInteger(0, 1024 * 1024 * 1024),
  maxEntries: isInteger(1, 10_000_000),
  maxBytes: isInteger(1, Number.MAX_SAFE_INTEGER),
}

/**
 * Identical GET and HEAD requests share one run of the handler. Wrap it around the handler of a Web-standard server.
 * @throws InvalidOption
 * @example
 * const share = coalesceResponses({ ttl: '1s' })
 * const handle = (request: Request) => share(request, () => render(request))
 */
export function coalesceResponses(options: CoalesceResponsesOptions = {}): CoalescedResponses {
  const given = checkOptions(options, RULES, 'coalesceResponses')
  const { key: keyOf } = given
  const rules = new RequestRules(given)
  const responses = new SharedResponses({
    timeout: milliseconds(given.timeout ?? '30s', 'timeout'),
    ttl: milliseconds(given.ttl ?? 0, 'ttl'),
    entries: given.maxEntries ?? 1000,
    bytes: given.maxBytes ?? 64 * 1024 * 1024,
    maxBody: given.maxBody ?? 1024 * 1024,
  })

  const share = async (request: Request, next: () => Response | Promise<Response>): Promise<Response> => {
    const key = METHODS.includes(request.method) ? sharedKey(request, keyOf, rules) : undefined
    return key === undefined ? responses.alone(next) : responses.answer(request, key, next)
  }
  return Object.assign(share, {
    clear: (key: string) => {
      for (const method of METHODS) responses.clear(`${method} ${key}`)
    },
    clearAll: () => responses.clearAll(),
    stats: () => ({ ...responses.counts(), personal: rules.personal }),
  })
}

const METHODS: readonly string[] = ['GET', 'HEAD']

/** @returns undefined for a request that shares nothing */
function sharedKey(
  request: Request,
  keyOf: ((request: Request) => ResponseKey) | undefined,
  rules: RequestRules,
): string | undefined {
  const given = keyOf === undefined ? request.url : keyOf(request)
  if (given === undefined) return undefined
  const { key, covers } = typeof given === 'string' ? { key: given, covers: [] } : given
  if (typeof key !== 'string' || areNames(covers) !== true) {
    const message = `coalesceResponses: key must answer with a text, { key, covers } or undefined; got ${shown(given)}`
    throw new MillpondError('InvalidOption', message)
  }
  const prefix = rules.prefix(request, covers, keyOf === undefined)
  return prefix === undefined ? undefined : `${prefix}${request.method} ${key}`
}
