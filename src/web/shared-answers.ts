/**
 * Identical requests share one run of the handler.
 *
 * A request's key is what makes it identical to others, until an answer says by `Vary` which headers it depends on as well.
 * From then on their values are a part of the key; and since nobody knew before, those who waited for that answer
 * compare their own values with those it was made for, and start over if they differ.
 *
 *   request ──kept──► reused
 *     │ ──none under way──► run it ──► shared: kept for `ttl`; or its own: the key is remembered as one that cannot be shared
 *     │ ──under way──► wait ──► shared and made for such a request ──► answered
 *     │                  └────► otherwise start over, and at last run it alone
 *     └ ──remembered as not shareable──► run it alone
 */
import { Flights } from '../coalesce/flights.ts'
import { TtlMap } from '../coalesce/ttl-map.ts'
import { isMillpondError } from '../values/errors.ts'
import { later, problem } from './problem.ts'
import { type Reading, type Rendered, render, toResponse } from './rendered.ts'
import { verdictOf } from './shareable.ts'

type Next = () => Response | Promise<Response>

interface SharedAnswer {
  rendered: Rendered
  since: number
  vary: readonly string[]
  /** Of the headers that it varies by, in the request that it was made for. */
  values: readonly string[]
  /** The key with all that is known of what it varies by. */
  variant: string
  ttl: number
}

/** What a run came to, for those who wait for it. */
type Outcome =
  | { kind: 'shared'; answer: SharedAnswer }
  /** Not for others. */
  | { kind: 'own' }
  | { kind: 'threw'; error: unknown }
  /** The client hung up, and it came to nothing by that. */
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
  /** Shared calls: runs of the handler for identical requests. */
  flights: number
  /** Requests that waited for a shared call. */
  joined: number
  /** Requests answered by a kept answer. */
  reused: number
  /** Runs for one request alone, because the request or its answer could not be shared. */
  alone: number
  /** Shared calls that exceeded `timeout`. */
  timedOut: number
  /** Shared calls under way. */
  underWay: number
  /** Answers kept, and their bytes. */
  kept: number
  keptBytes: number
}

/** How often a request waits for others' runs, at the most, before it runs alone. */
const MAX_WAITS = 3
/** How long, in ms, a key counts as one whose answers cannot be shared, so that its requests need not wait to find out. */
const UNSHARED_TTL = 10_000
/** How long, in ms, it is remembered what an answer varies by. It is learned anew with each answer. */
const VARY_TTL = 600_000
/** Most text, in UTF-16 units, that either memory's keys may hold. */
const MAX_KEY_TEXT = 4_194_304

export class SharedAnswers {
  readonly #flights: Flights<Outcome>
  readonly #kept: TtlMap<SharedAnswer> | undefined
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
   * @param key lines of headers that are part of it, if any, and an empty one; then method and key
   * @throws what `next` throws, to all who wait for it, and AbortError to a request whose client is gone
   */
  async answer(request: Request, key: string, next: Next): Promise<Response> {
    for (let waits = 0; waits < MAX_WAITS; waits++) {
      const variant = this.#variantOf(request, key)
      const kept = this.#kept?.get(variant)
      if (kept !== undefined) {
        this.#reused++
        return toResponse(kept.rendered, performance.now() - kept.since)
      }
      if (this.#unshared.get(variant)) break
      const mine: { response?: Promise<Response> } = {}
      const flight = this.#flights.join(variant, () => {
        const { response, outcome } = this.#run(request, key, next)
        mine.response = response
        return outcome
      })
      if (mine.response !== undefined) {
        // The request that runs it is held to no time limit.
        flight.catch(() => {})
        return mine.response
      }
      const outcome = await flight.catch(late)
      if (!('kind' in outcome)) return outcome
      if (outcome.kind === 'threw') throw outcome.error
      if (outcome.kind === 'shared' && suits(outcome.answer, request)) return toResponse(outcome.answer.rendered)
      if (request.signal.aborted) throw new DOMException('The client has hung up', 'AbortError')
    }
    return this.alone(next)
  }

  /** For a request that can share nothing. */
  async alone(next: Next): Promise<Response> {
    this.#alone++
    return next()
  }

  /** Forgets what is kept for the method and key, in all its variants; later requests do not get the answer of a run under way. */
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

  /** @returns the response for the request itself, and for those who wait what it came to, which never rejects */
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
    const read: Reading = verdict.share ? await render(own, this.#limits.maxBody) : { streamed: own }
    const response = read.rendered === undefined ? read.streamed : toResponse(read.rendered)
    // The client's hanging up may be why it is an error.
    if (own.status >= 400 && request.signal.aborted) return { response, outcome: { kind: 'left' } }
    if (verdict.share) this.#learn(key, verdict.vary)
    const variant = this.#variantOf(request, key)
    if (!verdict.share || read.rendered === undefined) {
      // Too large counts as lasting.
      if (verdict.share || verdict.lasting) this.#unshared.put(variant, true, variant.length)
      return { response, outcome: { kind: 'own' } }
    }
    const { vary, fresh } = verdict
    const values = vary.map((name) => valueIn(name, request))
    const shared = { rendered: read.rendered, since: performance.now(), vary, values, variant }
    return { response, outcome: { kind: 'shared', answer: { ...shared, ttl: Math.min(this.#limits.ttl, fresh) } } }
  }

  #keep(outcome: Outcome): void {
    if (outcome.kind !== 'shared' || outcome.answer.ttl === 0) return
    const { variant, rendered, ttl } = outcome.answer
    this.#kept?.put(variant, outcome.answer, rendered.bytes + variant.length, ttl)
  }

  /** A key only ever gains names while it is remembered: too fine a distinction costs a run, too coarse a one would show an answer to the wrong one. */
  #learn(key: string, vary: readonly string[]): void {
    const known = this.#varies.get(key)
    if (vary.length === 0 && known === undefined) return
    const names = [...new Set([...(known ?? []), ...vary])].sort()
    this.#varies.put(key, names, key.length)
  }

  /** In front of the key, each on its line: no value holds a line break, and no key begins like a header. */
  #variantOf(request: Request, key: string): string {
    const names = this.#varies.get(key)
    if (names === undefined) return key
    return `${names.map((name) => name + valueIn(name, request)).join('\n')}\n\n${key}`
  }
}

const isVariantOf = (key: string, variant: string): boolean => variant === key || variant.endsWith(`\n\n${key}`)

/** A flight itself rejects by its time limit alone; what the handler throws is an outcome. */
function late(error: unknown): Response {
  if (!isMillpondError(error, 'TimedOut')) throw error
  const detail = 'Others asked for the same before, and their answer takes too long. Send the request again later.'
  return problem({ status: 503, code: error.code, detail, headers: later(1) })
}

/** A header that is empty is not one that is absent. */
function valueIn(name: string, { headers }: Request): string {
  const value = headers.get(name)
  return value === null ? '' : `:${value}`
}

const suits = ({ vary, values }: SharedAnswer, request: Request): boolean =>
  vary.every((name, index) => valueIn(name, request) === values[index])
