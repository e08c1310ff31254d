/**
 * Identical requests share one run of the handler. Knows neither `Request` nor `Response`, so that every kind of server can use it.
 *
 * A request's key is what makes it identical to others, until an answer says by `Vary` which headers it depends on as well.
 * From then on their values are a part of the key; and since nobody knew before, whoever waited for that answer
 * compares its own values with those it was made for, and starts over if they differ.
 *
 *   come ──kept──► reused
 *     │ ──none under way──► run it ──► shared: kept for `ttl`; or its own: the key is remembered as one that cannot be shared
 *     │ ──under way──► wait ──► shared and made for such as me ──► answered
 *     │                  └────► otherwise start over, and at last run it alone
 *     └ ──remembered as not shareable──► run it alone
 */
import { Flights } from '../coalesce/flights.ts'
import { Kept } from '../coalesce/kept.ts'
import { isMillpondError, type MillpondError } from '../errors.ts'
import type { Rendered } from './rendered.ts'
import type { HeaderOf, Verdict } from './sharing.ts'

/** A request, as far as sharing goes. */
export interface Asker {
  /** What makes it identical to others: lines of headers that are part of it, if any, and an empty one; then its method and key. */
  key: string
  header: HeaderOf
  /** Whether its client has hung up. */
  gone: () => boolean
}

/** An answer that came of running the handler. */
export interface Ran<Own> {
  /** For the one who ran it. */
  own: Own
  /** For the others, if the verdict lets them have it. */
  rendered: Rendered | undefined
  verdict: Verdict
  /** Whether it is an error, which may have come about by the client's hanging up. */
  failed: boolean
}

export type Answer<Own> =
  | { own: Own }
  /** `age`: in ms. */
  | { rendered: Rendered; age: number }
  /** The one who runs the handler took too long. */
  | { late: MillpondError }

type Outcome =
  /** `variant`: the key with all that is known of what it varies by. */
  | {
      kind: 'shared'
      kept: KeptAnswer
      vary: readonly string[]
      values: readonly string[]
      variant: string
      ttl: number
    }
  /** Not for others. */
  | { kind: 'own' }
  | { kind: 'threw'; error: unknown }
  /** The one who ran it hung up, and it came to nothing by that. */
  | { kind: 'left' }

interface KeptAnswer {
  rendered: Rendered
  since: number
}

export interface SharingLimits {
  timeout: number
  ttl: number
  entries: number
  bytes: number
}

export interface SharingCounts {
  /** Runs of the handler for all who came with the same request. */
  flights: number
  /** Requests that waited for one. */
  joined: number
  /** Requests answered by what was kept. */
  reused: number
  /** Runs for one request alone, since its answer, or it, could not be shared. */
  alone: number
  /** Flights over the time limit. */
  timedOut: number
  /** Flights under way. */
  underWay: number
  /** Answers kept, and their bytes. */
  kept: number
  keptBytes: number
}

/** How often a request waits for others' runs, at the most, before it runs alone. */
const ROUNDS = 3
/** How long, in ms, a key counts as one whose answers cannot be shared, so that its requests need not wait to find out. */
const PASS = 10_000
/** How long, in ms, it is remembered what an answer varies by. It is learned anew with each answer. */
const VARY = 600_000
/** Most text, in UTF-16 units, that either memory's keys may hold. */
const MEMORY = 4_194_304

export class SharedAnswers {
  readonly #flights: Flights<Outcome>
  readonly #kept: Kept<KeptAnswer> | undefined
  readonly #ttl: number
  readonly #varies: Kept<readonly string[]>
  readonly #passes: Kept<true>
  readonly #steps = new Steps()
  #reused = 0
  #alone = 0

  constructor({ timeout, ttl, entries, bytes }: SharingLimits) {
    this.#ttl = ttl
    this.#kept = ttl === 0 ? undefined : new Kept({ ttl, entries, weight: bytes })
    this.#varies = new Kept({ ttl: VARY, entries, weight: MEMORY })
    this.#passes = new Kept({ ttl: PASS, entries, weight: MEMORY })
    this.#flights = new Flights(timeout, (_key, outcome) => this.#landed(outcome))
  }

  /** @throws what `run` throws, to all of its flight, and AbortError to one who is gone */
  async answer<Own>(
    asker: Asker,
    run: () => Promise<Own>,
    examine: (own: Own) => Promise<Ran<Own>>,
  ): Promise<Answer<Own>> {
    for (let round = 0; round < ROUNDS; round++) {
      const variant = this.#variantOf(asker)
      const kept = this.#kept?.get(variant)
      if (kept !== undefined) {
        this.#reused++
        return { rendered: kept.rendered, age: performance.now() - kept.since }
      }
      if (this.#passes.get(variant)) break
      const mine: { ran?: Promise<Own> } = {}
      const flight = this.#flights.board(variant, () => {
        const { own, outcome } = this.#run(asker, run, examine)
        mine.ran = own
        return outcome
      })
      if (mine.ran !== undefined) {
        // The one who runs it is held to no time limit.
        flight.catch(() => {})
        return { own: await mine.ran }
      }
      const outcome = await flight.catch(late)
      if (outcome.kind === 'late') return { late: outcome.error }
      if (outcome.kind === 'threw') throw outcome.error
      if (outcome.kind === 'shared' && suits(outcome, asker)) return { rendered: outcome.kept.rendered, age: 0 }
      if (asker.gone()) throw new DOMException('The client has hung up', 'AbortError')
      // Those who must run alone were all woken in this one turn.
      if (outcome.kind === 'own') await this.#steps.next()
    }
    return { own: await this.alone(run) }
  }

  /** For a request that can share nothing. */
  alone<Own>(run: () => Promise<Own>): Promise<Own> {
    this.#alone++
    return run()
  }

  /** Forgets what is kept for the method and key, in all its variants; nobody who comes from now on gets the answer of a run under way. */
  clear(key: string): void {
    const suffix = `\n\n${key}`
    for (const memory of [this.#kept, this.#passes]) {
      for (const variant of memory?.keys() ?? []) {
        if (variant === key || variant.endsWith(suffix)) memory?.delete(variant)
      }
    }
    for (const variant of this.#flights.keys()) {
      if (variant === key || variant.endsWith(suffix)) this.#flights.clear(variant)
    }
  }

  clearAll(): void {
    this.#kept?.clear()
    this.#varies.clear()
    this.#passes.clear()
    this.#flights.clearAll()
  }

  counts(): SharingCounts {
    const { flights, joined, timedOut } = this.#flights.counts
    return {
      flights,
      joined,
      reused: this.#reused,
      alone: this.#alone,
      timedOut,
      underWay: this.#flights.size,
      kept: this.#kept?.size ?? 0,
      keptBytes: this.#kept?.weight ?? 0,
    }
  }

  #run<Own>(asker: Asker, run: () => Promise<Own>, examine: (own: Own) => Promise<Ran<Own>>) {
    const ran = run().then(examine)
    const outcome = ran.then(
      (result) => this.#outcomeOf(asker, result),
      (error: unknown): Outcome => (asker.gone() ? { kind: 'left' } : { kind: 'threw', error }),
    )
    return { own: ran.then(({ own }) => own), outcome }
  }

  #outcomeOf<Own>(asker: Asker, { rendered, verdict, failed }: Ran<Own>): Outcome {
    if (failed && asker.gone()) return { kind: 'left' }
    if (verdict.share) this.#learn(asker.key, verdict.vary)
    const variant = this.#variantOf(asker)
    if (!verdict.share || rendered === undefined) {
      // Too large counts as lasting.
      if (verdict.share || verdict.lasting) this.#passes.put(variant, true, variant.length)
      return { kind: 'own' }
    }
    const { vary } = verdict
    const values = vary.map((name) => valueIn(name, asker))
    const ttl = Math.min(this.#ttl, verdict.fresh)
    return { kind: 'shared', kept: { rendered, since: performance.now() }, vary, values, variant, ttl }
  }

  #landed(outcome: Outcome): void {
    if (outcome.kind !== 'shared' || outcome.ttl === 0) return
    const { variant, kept, ttl } = outcome
    this.#kept?.put(variant, kept, kept.rendered.bytes + variant.length, ttl)
  }

  /** A key only ever gains names while it is remembered: too fine a distinction costs a run, too coarse a one would show an answer to the wrong one. */
  #learn(key: string, vary: readonly string[]): void {
    const known = this.#varies.get(key)
    if (vary.length === 0 && known === undefined) return
    const names = [...new Set([...(known ?? []), ...vary])].sort()
    this.#varies.put(key, names, key.length)
  }

  /** In front of the key, each on its line: no value holds a line break, and no key begins like a header. */
  #variantOf(asker: Asker): string {
    const names = this.#varies.get(asker.key)
    if (names === undefined) return asker.key
    return `${names.map((name) => name + valueIn(name, asker)).join('\n')}\n\n${asker.key}`
  }
}

/** A flight itself rejects by its time limit alone; what the handler throws is an outcome. */
function late(error: unknown): { kind: 'late'; error: MillpondError } {
  if (isMillpondError(error, 'TimedOut')) return { kind: 'late', error }
  throw error
}

/** A header that is empty is not one that is absent. */
function valueIn(name: string, asker: Asker): string {
  const value = asker.header(name)
  return value == null ? '' : `:${value}`
}

function suits({ vary, values }: { vary: readonly string[]; values: readonly string[] }, asker: Asker): boolean {
  return vary.every((name, index) => valueIn(name, asker) === values[index])
}

/** Lets those who were woken together go on in steps, so that a thousand handlers do not begin in one turn of the event loop. */
class Steps {
  #waiting: (() => void)[] = []

  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#step())
    })
  }

  #step(): void {
    for (const resolve of this.#waiting.splice(0, 32)) resolve()
    if (this.#waiting.length > 0) setImmediate(() => this.#step())
  }
}
