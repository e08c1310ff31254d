/** Identical GET and HEAD requests share one run of the handler and one rendered answer. The rules are in `shared-requests.ts` and `sharing.ts`. */
import { type Duration, milliseconds, shown } from '../duration.ts'
import { MillpondError } from '../errors.ts'
import { checkOptions, isFunction, isInteger } from '../options.ts'
import { later, problem } from './problem.ts'
import { render, toResponse } from './rendered.ts'
import { isDuration } from './settings.ts'
import { type Ran, SharedAnswers, type SharingCounts } from './shared-answers.ts'
import { RequestRules } from './shared-requests.ts'
import { verdictOf } from './sharing.ts'

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
  const { key: keyOf, rules, maxBody, limits } = checked(options)
  const answers = new SharedAnswers(limits)

  const share = async (request: Request, next: () => Response | Promise<Response>): Promise<Response> => {
    const run = async () => next()
    const key = sharedKey(request, keyOf, rules)
    if (key === undefined) return answers.alone(run)
    const { headers } = request
    const asker = { key, header: (name: string) => headers.get(name), gone: () => request.signal.aborted }
    const crossOrigin = headers.has('origin')
    const answer = await answers.answer(asker, run, (response) => examined(response, crossOrigin, maxBody))
    if ('own' in answer) return answer.own
    if ('rendered' in answer) return toResponse(answer.rendered, answer.age)
    const detail = 'Others asked for the same before, and their answer takes too long. Send the request again later.'
    return problem({ status: 503, code: answer.late.code, detail, headers: later(1) })
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

async function examined(response: Response, crossOrigin: boolean, maxBody: number): Promise<Ran<Response>> {
  const { headers, status } = response
  const verdict = verdictOf(status, (name) => headers.get(name), crossOrigin)
  const failed = status >= 400
  if (!verdict.share) return { own: response, rendered: undefined, verdict, failed }
  const { rendered, streamed } = await render(response, maxBody)
  return { own: rendered === undefined ? streamed : toResponse(rendered), rendered, verdict, failed }
}

function checked(options: CoalesceResponsesOptions) {
  const given = checkOptions(
    options,
    {
      key: isFunction,
      ttl: isDuration('ttl', 0),
      timeout: isDuration('timeout'),
      vary: (value) => isNames(value) || 'an array of header names',
      ignore: (value) => isNames(value) || 'an array of header names',
      personal: (value) => isNames(value) || 'an array of header names',
      maxBody: isInteger(0, 1_073_741_824),
      maxEntries: isInteger(1, 10_000_000),
      maxBytes: isInteger(1, Number.MAX_SAFE_INTEGER),
    },
    'coalesceResponses',
  )
  return {
    key: given.key ?? ((request: Request) => request.url),
    rules: new RequestRules(given),
    maxBody: given.maxBody ?? 1_048_576,
    limits: {
      timeout: milliseconds(given.timeout ?? '30s', 'timeout'),
      ttl: milliseconds(given.ttl ?? 0, 'ttl'),
      entries: given.maxEntries ?? 1000,
      bytes: given.maxBytes ?? 67_108_864,
    },
  }
}

const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((name) => typeof name === 'string' && /^[!#$%&'*+\-.^_`|~a-z0-9]+$/i.test(name))
