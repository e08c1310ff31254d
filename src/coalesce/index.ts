/**
 * Identical calls that are made at the same time become one, whose answer everyone gets. `flights.ts` does so within a process,
 * `shared-calls.ts` among several.
 */

import type { Millpond } from '../pond/millpond.ts'
import { TtlMap } from '../values/collections/ttl-map.ts'
import { MillpondError } from '../values/errors/errors.ts'
import {
  checkFunction,
  checkOptions,
  isDuration,
  isFunction,
  isInteger,
  type Rules,
  signalOf,
} from '../values/options/options.ts'
import { inThisContext } from '../values/runtime/async-context.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { type Duration, kindOf, milliseconds } from '../values/time/duration.ts'
import { type FlightCounts, Flights } from './flights.ts'
import { SharedCalls } from './shared-calls.ts'

const NAME = /^[A-Za-z0-9_\-.:/]{1,100}$/

export interface CoalesceOptions<In, Out> {
  /**
   * Which calls are identical: those of the same text, of any length. It must hold all that the answer depends on, the
   * user too if that is so.
   */
  key: (input: In) => string
  /** How long a flight may take, after which all who wait get `TimedOut`. `'30s'` unless given; 1 ms to 24 days. */
  timeout?: Duration | undefined
  /**
   * For how long an answer is reused after its flight, up to 24 days. 0 unless given: not at all. Errors are never reused. An answer
   * that is asked for late in that time is renewed ahead, so that a steady stream of callers never waits.
   */
  ttl?: Duration | undefined
  /** Most answers kept for reuse; beyond it the oldest goes. 1,000 unless given; 1 to 10,000,000. */
  maxEntries?: number | undefined
  /** Makes each caller's own copy of the answer, `structuredClone` say. Without it all callers get the same object. */
  copy?: ((value: Out) => Out) | undefined
  /**
   * Processes that share this pond's store make one call between them. Input and answer then travel through the store, as
   * payloads and results do. Any of the processes may make the call, until its pond closes.
   */
  shared?: Millpond | undefined
  /** With `shared`, and only then: what tells this function from others, the same in every process. 1 to 100 of `A–Z a–z 0–9 _ - . : /`. */
  name?: string | undefined
}

export interface CoalesceCallOptions {
  /** Lets this caller leave: rejects with its reason. The flight goes on for the others, and is aborted when nobody is left. */
  signal?: AbortSignal | undefined
}

/** What the function gets beside its input. */
export interface FlightContext {
  /**
   * Aborted when everyone who waited has left (`AbortError`), or the time limit is over (`TimedOut`). With `shared`, when everyone
   * has left the process where the shared call began, or the call was lost to another process: the reason is then that of a job.
   */
  signal: AbortSignal
}

export interface CoalesceStats extends FlightCounts {
  /**
   * Calls of the function that this process has made. With `shared`, another process may make the call for a flight of this one, and this
   * one for a flight of another.
   */
  calls: number
  /** Callers who got an answer that was kept. */
  reused: number
  /** Flights under way. */
  underWay: number
  /** Answers kept. */
  kept: number
}

export interface Coalesced<In, Out> {
  /**
   * The answer of the flight.
   * @throws InvalidOption: the key is no text, TimedOut, what the function throws, and the reason of `signal`; with `shared` also
   * PayloadNotEncodable, PayloadTooLarge, StoreUnavailable, StoreFull, StoreFailed, Closed
   */
  (input: In, options?: CoalesceCallOptions): Promise<Out>
  /**
   * Forgets the answer kept for the key. A flight under way still answers the callers that wait for it, but no later ones, and its answer
   * is not kept.
   * @throws InvalidOption
   */
  clear(key: string): void
  /** Forgets the answers of all keys, as `clear` does. */
  clearAll(): void
  stats(): CoalesceStats
}

export type CoalesceFunction<In, Out> = (input: In, context: FlightContext) => Out | PromiseLike<Out>

/** An answer that is kept. The promise is handed out as it is, so that a hit makes none. */
interface Answer<Out> {
  promise: Promise<Out>
  /** From then on the next caller starts its renewal; `performance.now()`. About two flights before it ends, at most half its time. */
  renewAt: number
}

/**
 * Makes one call of all that come with the same key while it is under way. An error goes to everyone who waits and is
 * never kept. The function is called for many callers, so it runs in the asynchronous context (`AsyncLocalStorage`) in
 * which `coalesce` was called, not in one of theirs.
 * @throws InvalidOption
 * @example
 * const getHeaders = coalesce(fetchHeaders, { key: (request) => request.url })
 * const headers = await getHeaders(request, { signal })
 */
export function coalesce<In = void, Out = unknown>(
  fn: CoalesceFunction<In, Out>,
  options: CoalesceOptions<In, Out>,
): Coalesced<In, Out> {
  const load = inThisContext(fn)
  const { key: keyOf, copy, timeout, ttl, maxEntries, shared } = checkCoalesceOptions(fn, options)
  const kept = ttl === 0 ? undefined : new TtlMap<Answer<Out>>({ ttl, entries: maxEntries })
  const keep = (key: string, value: Out, took: number): void => {
    const promise = Promise.resolve<Promise<Out> | Out>(value)
    kept?.put(key, { promise, renewAt: performance.now() + Math.max(ttl / 2, ttl - 2 * took) })
  }
  const flights = new Flights<Out>(timeout, kept && keep)
  const elsewhere = shared && new SharedCalls<In, Out>(shared.pond, { name: shared.name, timeout, fn })
  let reused = 0

  const join = (key: string, input: In, signal?: AbortSignal): Promise<Out> => {
    const run = (aborted: AbortSignal) => elsewhere?.get(key, input, aborted) ?? load(input, { signal: aborted })
    return flights.join(key, run, signal)
  }
  const renew = (key: string, input: In, answer: Answer<Out>): void => {
    // Once: if it fails, the next call is made when the answer is over, as without renewing.
    answer.renewAt = Number.POSITIVE_INFINITY
    join(key, input).catch(() => {})
  }

  // Not async: callers who cannot leave share the flight's own promise, a thousand as cheaply as one.
  const call = (input: In, callOptions?: CoalesceCallOptions): Promise<Out> => {
    try {
      const signal = signalOf(callOptions, 'a coalesced call')
      const key = checkKey(keyOf(input))
      const there = kept?.get(key)
      if (there !== undefined) {
        reused++
        if (there.renewAt <= performance.now()) renew(key, input, there)
      }
      const answer = there?.promise ?? join(key, input, signal)
      return copy === undefined ? answer : answer.then(copy)
    } catch (error) {
      return Promise.reject(error)
    }
  }
  return Object.assign(call, {
    clear: (key: string) => {
      checkKey(key)
      kept?.delete(key)
      flights.clear(key)
      elsewhere?.clear(key)
    },
    clearAll: () => {
      kept?.clear()
      flights.clearAll()
      elsewhere?.clearAll()
    },
    stats: () => ({
      ...flights.counts,
      calls: elsewhere?.calls ?? flights.counts.flights,
      reused,
      underWay: flights.size,
      kept: kept?.size ?? 0,
    }),
  })
}

function checkCoalesceOptions<In, Out>(fn: CoalesceFunction<In, Out>, options: CoalesceOptions<In, Out>) {
  checkFunction(fn, 'coalesce takes a function first')
  const rules: Rules<CoalesceOptions<In, Out>> = {
    key: isFunction,
    timeout: isDuration(),
    ttl: isDuration(0),
    maxEntries: isInteger(1, 10_000_000),
    copy: isFunction,
    shared: (value) => isPond(value) || 'a pond, as Millpond.open resolves to',
    name: (value) =>
      (typeof value === 'string' && NAME.test(value)) || 'made of 1 to 100 of the characters A–Z a–z 0–9 _ - . : /',
  }
  const given = checkOptions<CoalesceOptions<In, Out>>(options, rules, 'coalesce', ['key'])
  const { key, copy, shared, name } = given
  const timeout = milliseconds(given.timeout ?? DEFAULTS.coalesce.timeout, 'timeout')
  const checked = { key, copy, timeout, ttl: milliseconds(given.ttl ?? 0, 'ttl'), maxEntries: given.maxEntries ?? 1000 }
  if (shared === undefined && name === undefined) return { ...checked, shared: undefined }
  if (shared !== undefined && name !== undefined) return { ...checked, shared: { pond: shared, name } }
  const message = 'coalesce: `shared` and `name` come together: a name tells shared functions apart'
  throw new MillpondError('InvalidOption', message)
}

/** Not `instanceof`, which would bring the queue and every store into a bundle that only coalesces. */
function isPond(value: unknown): value is Millpond {
  if (typeof value !== 'object' || value === null) return false
  return ['queue', 'result', 'cancel'].every((name) => typeof Reflect.get(value, name) === 'function')
}

/** A key that is not a text, `undefined` above all, would make calls share that have nothing in common. */
function checkKey(key: unknown): string {
  if (typeof key === 'string') return key
  throw new MillpondError('InvalidOption', `coalesce: a key must be a text; got ${kindOf(key)}`)
}
