/**
 * Identical requests share one run of the handler.
 *
 * A response may say by `Vary` that it depends on further request headers. From then on their values are part of the key. Requests that
 * waited for that response compare their values with those of its request, and start over if they differ.
 *
 *   request ──kept──► reused
 *     │ ──none under way──► run it ──► shared: kept for `ttl`; or not: the key is remembered as unshareable
 *     │ ──under way──► wait ──► shared, with the same values ──► answered
 *     │                  └────► otherwise start over, and after MAX_WAITS run it alone
 *     └ ──remembered as unshareable──► run it alone
 */
import { Flights } from '../coalesce/flights.ts'
import { TtlMap } from '../values/collections/ttl-map.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import { type BufferedResponse, buffered, toResponse } from './buffered-response.ts'
import { problem, retryAfterHeader } from './problem.ts'
import { verdictOf } from './response-rules.ts'

type Next = () => Response | Promise<Response>

interface SharedResponse {
  buffered: BufferedResponse
  since: number
  vary: readonly string[]
  /** Of the `vary` headers, in the request that it was made for. */
  values: readonly string[]
  /** The key with the values of all headers that it is known to vary by. */
  variant: string
  ttl: number
}

/** How a run ended, for requests that wait for it. `own`: not for others. `left`: the client hung up, and so it failed. */
type Outcome =
  | { kind: 'shared'; shared: SharedResponse }
  | { kind: 'own' }
  | { kind: 'threw'; error: unknown }
  | { kind: 'left' }

export interface SharingLimits {
  timeout: number
  ttl: number
  entries: number
  bytes: number
  /** Of a body that is shared, in bytes. */
  maxBody: number
}

export interface SharingCounts {
  /** Runs of the handler for identical requests. */
  flights: number
  /** Requests that waited for a flight. */
  joined: number
  /** Requests answered by a kept answer. */
  reused: number
  /** Runs for one request alone, because the request or its answer could not be shared. */
  alone: number
  /** Flights that exceeded `timeout`. */
  timedOut: number
  /** Flights under way. */
  underWay: number
  /** Answers kept, and their bytes. */
  kept: number
  keptBytes: number
}

/** Most runs of others that a request waits for, before it runs alone. */
const MAX_WAITS = 3
/** Milliseconds that a key counts as unshareable, so that its requests need not wait to find out. */
const UNSHARED_TTL = 10_000
/** Milliseconds that the `Vary` of a key is remembered. Each response renews it. */
const VARY_TTL = 600_000
/** Most UTF-16 units of the keys in each of the two memories. */
const MAX_KEY_TEXT = 4_194_304

export class SharedResponses {
  readonly #flights: Flights<Outcome>
  readonly #kept: TtlMap<SharedResponse> | undefined
  readonly #limits: SharingLimits
  readonly #varies: TtlMap<readonly string[]>
  readonly #unshared: TtlMap<true>
  #reused = 0
  #alone = 0

  constructor(limits: SharingLimits) {
    const { timeout, ttl, entries, bytes } = limits
    this.#limits = limits
    this.#kept = ttl === 0 ? undefined : new TtlMap({ ttl, entries, weight: bytes })
    this.#varies = new TtlMap({ ttl: VARY_TTL, entries, weight: MAX_KEY_TEXT })
    this.#unshared = new TtlMap({ ttl: UNSHARED_TTL, entries, weight: MAX_KEY_TEXT })
    this.#flights = new Flights(timeout, (_key, outcome) => this.#keep(outcome))
  }

  /**
   * @param key lines of headers that are part of it, if any, and an empty line; then method and key
   * @throws what `next` throws, to all requests that wait for it; AbortError to a request whose client is gone
   */
  async answer(request: Request, key: string, next: Next): Promise<Response> {
    for (let waits = 0; waits < MAX_WAITS; waits++) {
      const variant = this.#variantOf(request, key)
      const kept = this.#kept?.get(variant)
      if (kept !== undefined) {
        this.#reused++
        return toResponse(kept.buffered, performance.now() - kept.since)
      }
      if (this.#unshared.get(variant)) break
      const mine: { response?: Promise<Response> } = {}
      const flight = this.#flights.join(variant, () => {
        const { response, outcome } = this.#run(request, key, next)
        mine.response = response
        return outcome
      })
      if (mine.response !== undefined) {
        // The time limit is for requests that wait, not for the one that runs it.
        flight.catch(() => {})
        return mine.response
      }
      const outcome = await flight.catch(late)
      if (!('kind' in outcome)) return outcome
      if (outcome.kind === 'threw') throw outcome.error
      if (outcome.kind === 'shared' && suits(outcome.shared, request)) return toResponse(outcome.shared.buffered)
      if (request.signal.aborted) throw new DOMException('The client has hung up', 'AbortError')
    }
    return this.alone(next)
  }

  /** For a request that shares nothing. */
  async alone(next: Next): Promise<Response> {
    this.#alone++
    return next()
  }

  /** Forgets all variants of the method and key. Later requests do not get the response of a run under way. */
  clear(key: string): void {
    for (const memory of [this.#kept, this.#unshared]) {
      for (const variant of memory?.keys() ?? []) if (isVariantOf(key, variant)) memory?.delete(variant)
    }
    for (const variant of this.#flights.keys()) if (isVariantOf(key, variant)) this.#flights.clear(variant)
  }

  clearAll(): void {
    this.#kept?.clear()
    this.#varies.clear()
    this.#unshared.clear()
    this.#flights.clearAll()
  }

  counts(): SharingCounts {
    const { flights, joined, timedOut } = this.#flights.counts
    return {
      ...{ flights, joined, timedOut },
      reused: this.#reused,
      alone: this.#alone,
      underWay: this.#flights.size,
      kept: this.#kept?.size ?? 0,
      keptBytes: this.#kept?.weight ?? 0,
    }
  }

  /** @returns the response for the request itself; and for those that wait the outcome, which never rejects */
  #run(request: Request, key: string, next: Next) {
    const ran = (async () => this.#examine(request, key, await next()))()
    const outcome = ran.then(
      (result) => result.outcome,
      (error: unknown): Outcome => (request.signal.aborted ? { kind: 'left' } : { kind: 'threw', error }),
    )
    return { response: ran.then(({ response }) => response), outcome }
  }

  async #examine(request: Request, key: string, own: Response): Promise<{ response: Response; outcome: Outcome }> {
    const verdict = verdictOf(own, request.headers.has('origin'))
    const read = verdict.share ? await buffered(own, this.#limits.maxBody) : { streamed: own }
    const response = 'streamed' in read ? read.streamed : toResponse(read.buffered)
    // The response may be an error because the client hung up.
    if (own.status >= 400 && request.signal.aborted) return { response, outcome: { kind: 'left' } }
    if (verdict.share) this.#learn(key, verdict.vary)
    const variant = this.#variantOf(request, key)
    if (!verdict.share || 'streamed' in read) {
      // The next one will be too large, too.
      if (verdict.share || verdict.lasting) this.#unshared.put(variant, true, variant.length)
      return { response, outcome: { kind: 'own' } }
    }
    const { vary, fresh } = verdict
    const values = vary.map((name) => valueIn(name, request))
    const ttl = Math.min(this.#limits.ttl, fresh)
    const shared = { buffered: read.buffered, since: performance.now(), vary, values, variant, ttl }
    return { response, outcome: { kind: 'shared', shared } }
  }

  #keep(outcome: Outcome): void {
    if (outcome.kind !== 'shared' || outcome.shared.ttl === 0) return
    const { variant, buffered, ttl } = outcome.shared
    this.#kept?.put(variant, outcome.shared, buffered.weight + variant.length, ttl)
  }

  /** Adds names of headers, and removes none: one too many costs a run, one too few would show a response to the wrong client. */
  #learn(key: string, vary: readonly string[]): void {
    const known = this.#varies.get(key)
    if (vary.length === 0 && known === undefined) return
    const names = [...new Set([...(known ?? []), ...vary])].sort()
    this.#varies.put(key, names, key.length)
  }

  /** The key behind its headers, each on a line: no value holds a line break, and no key begins like a header. */
  #variantOf(request: Request, key: string): string {
    const names = this.#varies.get(key)
    if (names === undefined) return key
    return `${names.map((name) => name + valueIn(name, request)).join('\n')}\n\n${key}`
  }
}

const isVariantOf = (key: string, variant: string): boolean => variant === key || variant.endsWith(`\n\n${key}`)

/** A flight itself rejects only by its time limit; an error of the handler is an outcome. */
function late(error: unknown): Response {
  if (!isMillpondError(error, 'TimedOut')) throw error
  const detail = 'Others asked for the same before, and their answer takes too long. Send the request again later.'
  return problem({ status: 503, code: error.code, detail, headers: retryAfterHeader(1) })
}

/** An empty header differs from an absent one. */
function valueIn(name: string, { headers }: Request): string {
  const value = headers.get(name)
  return value === null ? '' : `:${value}`
}

const suits = ({ vary, values }: SharedResponse, request: Request): boolean =>
  vary.every((name, index) => valueIn(name, request) === values[index])
