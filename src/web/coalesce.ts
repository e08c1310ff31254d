/** Identical GET and HEAD requests share one run of the handler and one rendered answer. The rules are in `request-rules.ts` and `shareable.ts`. */
import { type Duration, shown } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { checkOptions, isFunction, isInteger } from '../values/options.ts'
import { RequestRules } from './request-rules.ts'
import { isDuration, millisecondsOr } from './settings.ts'
import { SharedAnswers, type SharingCounts } from './shared-answers.ts'

/**
 * What makes requests identical, beside their method, what `Vary` names and the headers that divide. A text is for requests that name no
 * user. To share answers to those that do, say which of their headers the text accounts for: `{ key: `${user} ${url}`, covers: ['cookie'] }`.
 * `undefined`: this request shares nothing.
 */
export type ResponseKey = string | { key: string; covers: readonly string[] } | undefined

export interface CoalesceResponsesOptions {
  /** The URL unless given. */
  key?: (request: Request) => ResponseKey
  /** For how long an answer is reused. 0 unless given: only requests that are there at the same time share. `Cache-Control` may shorten it. */
  ttl?: Duration
  /** How long others wait for the one that runs the handler. `'30s'` unless given; at least 1 ms. */
  timeout?: Duration
  /**
   * Further request headers that answers differ by, such as `X-Tenant`: their values are part of the key. A header that is neither named here
   * or in `ignore`, nor covered by `key`, nor on the list of docs/coalesce.md, makes its request personal: it shares nothing.
   */
  vary?: readonly string[]
  /** Further request headers that no answer depends on, such as the request id of a proxy. */
  ignore?: readonly string[]
  /** Headers of the list that name a user to this service after all, such as `X-Real-IP`. */
  personal?: readonly string[]
  /** Largest body that is shared, in bytes. 1 MiB unless given. */
  maxBody?: number
  /** Most answers kept for reuse. 1,000 unless given. */
  maxEntries?: number
  /** Most bytes of all answers kept for reuse. 64 MiB unless given. */
  maxBytes?: number
}

export interface ResponseCounts extends SharingCounts {
  /** Request headers, twenty at most, that made requests personal, so that they ran alone. */
  personal: readonly string[]
}

export interface CoalescedResponses {
  /** Answers with what `next` does, or did for another. @throws what `next` throws, for all who waited for it */
  (request: Request, next: () => Response | Promise<Response>): Promise<Response>
  /** Forgets what is kept under this key (a URL, unless `key` was given); requests from now on get no answer of a run under way. */
  clear(key: string): void
  clearAll(): void
  stats(): ResponseCounts
}

/**
 * For a Web-standard server, as a wrapper around what answers the request.
 * @throws InvalidOption
 * @example
 * const share = coalesceResponses({ ttl: '1s' })
 * const handle = (request: Request) => share(request, () => render(request))
 */
export function coalesceResponses(options: CoalesceResponsesOptions = {}): CoalescedResponses {
  const { key: keyOf, rules, limits } = checked(options)
  const answers = new SharedAnswers(limits)

  const share = async (request: Request, next: () => Response | Promise<Response>): Promise<Response> => {
    const key = sharedKey(request, keyOf, rules)
    return key === undefined ? answers.alone(next) : answers.answer(request, key, next)
  }
  return Object.assign(share, {
    clear: (key: string) => {
      for (const method of METHODS) answers.clear(`${method} ${key}`)
    },
    clearAll: () => answers.clearAll(),
    stats: () => ({ ...answers.counts(), personal: rules.seen }),
  })
}

const METHODS: readonly string[] = ['GET', 'HEAD']

/** @returns undefined for a request that shares nothing */
function sharedKey(
  request: Request,
  keyOf: (request: Request) => ResponseKey,
  rules: RequestRules,
): string | undefined {
  const { method, headers } = request
  if (!METHODS.includes(method)) return undefined
  const given = keyOf(request)
  if (given === undefined) return undefined
  const { key, covers } = typeof given === 'string' ? { key: given, covers: [] } : given
  if (typeof key !== 'string' || !isNames(covers)) {
    const message = `coalesceResponses: key must answer with a text, { key, covers } or undefined; got ${shown(given)}`
    throw new MillpondError('InvalidOption', message)
  }
  const prefix = rules.prefix(headers, covers)
  return prefix === undefined ? undefined : `${prefix}${method} ${key}`
}

function checked(options: CoalesceResponsesOptions) {
  const given = checkOptions(
    options,
    {
      key: isFunction,
      ttl: isDuration('ttl', 0),
      timeout: isDuration('timeout'),
      vary: areNames,
      ignore: areNames,
      personal: areNames,
      maxBody: isInteger(0, 1_073_741_824),
      maxEntries: isInteger(1, 10_000_000),
      maxBytes: isInteger(1, Number.MAX_SAFE_INTEGER),
    },
    'coalesceResponses',
  )
  return {
    key: given.key ?? ((request: Request) => request.url),
    rules: new RequestRules(given),
    limits: {
      timeout: millisecondsOr(given.timeout, '30s'),
      ttl: millisecondsOr(given.ttl, 0),
      entries: given.maxEntries ?? 1000,
      bytes: given.maxBytes ?? 67_108_864,
      maxBody: given.maxBody ?? 1_048_576,
    },
  }
}

const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((name) => typeof name === 'string' && /^[!#$%&'*+\-.^_`|~a-z0-9]+$/i.test(name))

const areNames = (value: unknown) => isNames(value) || 'an array of header names'
