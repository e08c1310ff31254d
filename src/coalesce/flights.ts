/**
 * One call per key on behalf of many (single flight). Knows nothing of answers that are kept after it; `onAnswer` is where that hooks in.
 *
 *   under way ──answer or error───► ended   all callers get it
 *       │ ├──── time limit ───────► ended   they get TimedOut, the call is aborted
 *       │ └──── the last has left ► ended   the call is aborted
 *
 * What the call does after that is ignored. Many callers are answered in batches, one batch per tick of the event loop. A thousand
 * answers in one tick would hold up everything else, and above all new callers.
 */
import { MillpondError } from '../values/errors/errors.ts'

const MAX_CALLERS_PER_TICK = 50

export interface FlightCounts {
  /** Calls that were made. */
  flights: number
  /** Callers who joined one that was under way. */
  joined: number
  /** Calls that rejected. */
  failed: number
  /** Calls aborted by the time limit. */
  timedOut: number
  /** Calls aborted since everyone who waited had left. */
  aborted: number
}

type Run<Out> = (signal: AbortSignal) => Out | PromiseLike<Out>

type Outcome<Out> = { end: 'answered'; value: Out } | { end: 'failed' | 'timedOut' | 'aborted'; error: unknown }

/** One caller who can leave, or up to `MAX_CALLERS_PER_TICK` who cannot, and share a promise. */
interface Waiter<Out> extends PromiseWithResolvers<Out> {
  callers: number
  signal: AbortSignal | undefined
  leave: () => void
}

class Flight<Out> {
  readonly #call = new AbortController()
  readonly #onEnd: (outcome: Outcome<Out>) => void
  readonly #waiters = new Set<Waiter<Out>>()
  /** The last one of callers who cannot leave. */
  #shared: Waiter<Out> | undefined
  #ended = false
  readonly #timer: NodeJS.Timeout

  /** @param onEnd called once, before any caller is answered */
  constructor(timeout: number, onEnd: (outcome: Outcome<Out>) => void) {
    this.#onEnd = onEnd
    // Not unref'd: somebody waits for an answer.
    this.#timer = setTimeout(() => {
      const message = `the call that was shared took longer than its timeout of ${timeout} ms`
      this.#abort('timedOut', new MillpondError('TimedOut', message))
    }, timeout)
  }

  /** Makes the call. To be called once, with somebody waiting. */
  start(run: Run<Out>): void {
    const fail = (error: unknown) => this.#end({ end: 'failed', error })
    try {
      Promise.resolve(run(this.#call.signal)).then((value) => this.#end({ end: 'answered', value }), fail)
    } catch (error) {
      fail(error)
    }
  }

  /** @param signal lets this caller leave; it must not be aborted yet */
  join(signal: AbortSignal | undefined): Promise<Out> {
    const shared = signal === undefined ? this.#shared : undefined
    if (shared !== undefined && shared.callers < MAX_CALLERS_PER_TICK) {
      shared.callers++
      return shared.promise
    }
    const leave = () => this.#leave(waiter)
    const waiter: Waiter<Out> = { ...Promise.withResolvers<Out>(), callers: 1, signal, leave }
    if (signal === undefined) this.#shared = waiter
    else signal.addEventListener('abort', leave, { once: true })
    this.#waiters.add(waiter)
    return waiter.promise
  }

  #leave(waiter: Waiter<Out>): void {
    this.#waiters.delete(waiter)
    waiter.reject(waiter.signal?.reason)
    // Some callers are answered ticks after the end: leaving does not abort the call then.
    if (this.#ended || this.#waiters.size > 0) return
    this.#abort('aborted', new DOMException('Everyone who waited for this call has left', 'AbortError'))
  }

  #abort(end: 'timedOut' | 'aborted', error: Error): void {
    this.#end({ end, error })
    this.#call.abort(error)
  }

  #end(outcome: Outcome<Out>): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    this.#onEnd(outcome)
    this.#answer(outcome)
  }

  /** The next callers; the others in the ticks that follow. */
  #answer(outcome: Outcome<Out>): void {
    let answered = 0
    for (const waiter of this.#waiters) {
      // A shared promise takes a tick of its own.
      answered += waiter.signal === undefined ? MAX_CALLERS_PER_TICK : 1
      if (answered > MAX_CALLERS_PER_TICK) break
      this.#waiters.delete(waiter)
      waiter.signal?.removeEventListener('abort', waiter.leave)
      if (outcome.end === 'answered') waiter.resolve(outcome.value)
      else waiter.reject(outcome.error)
    }
    if (this.#waiters.size > 0) setImmediate(() => this.#answer(outcome))
  }
}

export class Flights<Out> {
  readonly #flights = new Map<string, Flight<Out>>()
  readonly #timeout: number
  readonly #onAnswer: ((key: string, value: Out, took: number) => void) | undefined
  readonly counts: FlightCounts = { flights: 0, joined: 0, failed: 0, timedOut: 0, aborted: 0 }

  /**
   * @param timeout of each flight, in ms
   * @param onAnswer called with each answer and how many ms it took, before the callers are answered; not if its key was cleared meanwhile
   */
  constructor(timeout: number, onAnswer?: (key: string, value: Out, took: number) => void) {
    this.#timeout = timeout
    this.#onAnswer = onAnswer
  }

  /** How many are under way, but for those that were cleared. */
  get size(): number {
    return this.#flights.size
  }

  keys(): Iterable<string> {
    return this.#flights.keys()
  }

  /**
   * Joins the key's flight, or makes one.
   * @param run called at once, and only if there is none under way; its signal is aborted by the time limit, or when the last has left
   * @param signal lets this caller leave; it must not be aborted yet
   * @throws TimedOut, what `run` throws, and the reason of `signal`
   */
  join(key: string, run: Run<Out>, signal?: AbortSignal): Promise<Out> {
    const underWay = this.#flights.get(key)
    if (underWay !== undefined) {
      this.counts.joined++
      return underWay.join(signal)
    }
    this.counts.flights++
    const began = performance.now()
    const flight: Flight<Out> = new Flight(this.#timeout, (outcome) => this.#ended(key, flight, outcome, began))
    // In the map before the call is made, so that a call that asks for its own key waits for itself and does not recur.
    this.#flights.set(key, flight)
    const answer = flight.join(signal)
    flight.start(run)
    return answer
  }

  /** Later callers do not join a flight that is under way. Those in it still get its answer. */
  clear(key: string): void {
    this.#flights.delete(key)
  }

  clearAll(): void {
    this.#flights.clear()
  }

  #ended(key: string, flight: Flight<Out>, outcome: Outcome<Out>, began: number): void {
    if (outcome.end !== 'answered') this.counts[outcome.end]++
    // Another flight may have the key by now, if it was cleared.
    if (this.#flights.get(key) !== flight) return
    this.#flights.delete(key)
    if (outcome.end === 'answered') this.#onAnswer?.(key, outcome.value, performance.now() - began)
  }
}
