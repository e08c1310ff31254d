/**
 * One call on behalf of many.
 *
 *   under way ──answer or error──► landed     whoever is aboard is told
 *       │ ├──── time limit ──────► landed     everyone gets TimedOut, the call is aborted
 *       │ └──── the last has left ► landed    nobody is left to be told, the call is aborted
 *
 * What the call does after it has landed is heard by nobody.
 */
import { MillpondError } from '../errors.ts'

interface Waiter<Out> {
  resolve: (out: Out) => void
  reject: (error: unknown) => void
  signal: AbortSignal
  leave: () => void
}

export type Landing<Out> =
  | { end: 'answered'; value: Out }
  | { end: 'failed' | 'timedOut' | 'abandoned'; error: unknown }

export class Flight<Out> {
  readonly #call = new AbortController()
  readonly #onLanded: (landing: Landing<Out>) => void
  /** Those who cannot leave share one promise, however many they are. */
  #together: PromiseWithResolvers<Out> | undefined
  #leavers: Set<Waiter<Out>> | undefined
  #landed = false
  readonly #timer: NodeJS.Timeout | undefined

  /** @param onLanded told once, before anyone aboard */
  constructor(timeout: number, onLanded: (landing: Landing<Out>) => void) {
    this.#onLanded = onLanded
    const late = () => {
      const error = new MillpondError(
        'TimedOut',
        `the call that was shared took longer than its timeout of ${timeout} ms`,
      )
      this.#land({ end: 'timedOut', error })
      this.#call.abort(error)
    }
    // Not unref'd: somebody waits for an answer.
    this.#timer = setTimeout(late, timeout)
  }

  /** Makes the call. To be called once, with somebody aboard. */
  start(run: (signal: AbortSignal) => Out | PromiseLike<Out>): void {
    const fail = (error: unknown) => this.#land({ end: 'failed', error })
    try {
      Promise.resolve(run(this.#call.signal)).then((value) => this.#land({ end: 'answered', value }), fail)
    } catch (error) {
      fail(error)
    }
  }

  /** @param signal lets this one leave; it must not be aborted yet */
  join(signal: AbortSignal | undefined): Promise<Out> {
    if (signal === undefined) {
      this.#together ??= Promise.withResolvers()
      return this.#together.promise
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Out> = { resolve, reject, signal, leave: () => this.#leave(waiter) }
      signal.addEventListener('abort', waiter.leave, { once: true })
      this.#leavers ??= new Set()
      this.#leavers.add(waiter)
    })
  }

  #leave(waiter: Waiter<Out>): void {
    this.#leavers?.delete(waiter)
    waiter.reject(waiter.signal.reason)
    if (this.#together !== undefined || this.#leavers?.size !== 0) return
    const error = new DOMException('Everyone who waited for this call has left', 'AbortError')
    this.#land({ end: 'abandoned', error })
    this.#call.abort(error)
  }

  #land(landing: Landing<Out>): void {
    if (this.#landed) return
    this.#landed = true
    clearTimeout(this.#timer)
    this.#onLanded(landing)
    if (landing.end === 'answered') this.#together?.resolve(landing.value)
    else this.#together?.reject(landing.error)
    for (const waiter of this.#leavers ?? []) {
      waiter.signal.removeEventListener('abort', waiter.leave)
      if (landing.end === 'answered') waiter.resolve(landing.value)
      else waiter.reject(landing.error)
    }
  }
}
