/** One flight per key. Knows nothing of what is kept after landing; `onAnswer` is where that hooks in. */
import { Flight, type Landing } from './flight.ts'

export interface FlightCounts {
  /** Calls that were made. */
  flights: number
  /** Callers who came aboard one that was under way. */
  joined: number
  /** Calls that rejected. */
  failed: number
  /** Calls aborted by the time limit. */
  timedOut: number
  /** Calls aborted since everyone who waited had left. */
  aborted: number
}

export class Flights<Out> {
  readonly #flights = new Map<string, Flight<Out>>()
  readonly #timeout: number
  readonly #onAnswer: ((key: string, value: Out, took: number) => void) | undefined
  readonly counts: FlightCounts = { flights: 0, joined: 0, failed: 0, timedOut: 0, aborted: 0 }

  /**
   * @param timeout of each flight, in ms
   * @param onAnswer told of each answer and of how many ms it took, before those who wait for it; not of one whose key was cleared meanwhile
   */
  constructor(timeout: number, onAnswer?: (key: string, value: Out, took: number) => void) {
    this.#timeout = timeout
    this.#onAnswer = onAnswer
  }

  /** How many are under way, but for those that were cleared. */
  get size(): number {
    return this.#flights.size
  }

  /** Keys under way. */
  keys(): Iterable<string> {
    return this.#flights.keys()
  }

  /**
   * Comes aboard the key's flight, or makes one.
   * @param run called at once, and only if there is none under way; its signal is aborted by the time limit, or when the last has left
   * @param signal lets this one leave; it must not be aborted yet
   * @throws TimedOut, what `run` throws, and the reason of `signal`
   */
  board(key: string, run: (signal: AbortSignal) => Out | PromiseLike<Out>, signal?: AbortSignal): Promise<Out> {
    const underWay = this.#flights.get(key)
    if (underWay !== undefined) {
      this.counts.joined++
      return underWay.join(signal)
    }
    this.counts.flights++
    const began = performance.now()
    const flight: Flight<Out> = new Flight(this.#timeout, (landing) => this.#landed(key, flight, landing, began))
    // In the map before the call is made, so that a call that asks for its own key waits for itself and does not recur.
    this.#flights.set(key, flight)
    const answer = flight.join(signal)
    flight.start(run)
    return answer
  }

  /** Whoever comes from now on does not come aboard a flight that is under way. Those in it still get its answer. */
  clear(key: string): void {
    this.#flights.delete(key)
  }

  clearAll(): void {
    this.#flights.clear()
  }

  #landed(key: string, flight: Flight<Out>, landing: Landing<Out>, began: number): void {
    if (landing.end === 'failed') this.counts.failed++
    else if (landing.end === 'timedOut') this.counts.timedOut++
    else if (landing.end === 'abandoned') this.counts.aborted++
    // Another flight may have the key by now, if it was cleared.
    if (this.#flights.get(key) !== flight) return
    this.#flights.delete(key)
    if (landing.end === 'answered') this.#onAnswer?.(key, landing.value, performance.now() - began)
  }
}
