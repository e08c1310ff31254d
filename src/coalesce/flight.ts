/**
 * One call on behalf of many.
 *
 *   under way ──answer or error──► landed     whoever is aboard is told
 *       │ ├──── time limit ──────► landed     everyone gets TimedOut, the call is aborted
 *       │ └──── the last has left ► landed    nobody is left to be told, the call is aborted
 *
 * What the call does after it has landed is heard by nobody. Many who wait are told in stretches, a turn of the event loop apart:
 * what a thousand of them do with the answer would else hold up everything else, and above all those who ask anew.
 */
import { MillpondError } from '../errors.ts'

/** Most who are told in one turn. */
const STRETCH = 50

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
  /** Those who cannot leave share promises, one for each stretch of them. */
  readonly #together: PromiseWithResolvers<Out>[] = []
  /** How many share the last one. */
  #last = STRETCH
  readonly #leavers = new Set<Waiter<Out>>()
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
    if (signal === undefined) return this.#joinTogether()
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Out> = { resolve, reject, signal, leave: () => this.#leave(waiter) }
      signal.addEventListener('abort', waiter.leave, { once: true })
      this.#leavers.add(waiter)
    })
  }

  #joinTogether(): Promise<Out> {
    const shared = this.#last < STRETCH ? this.#together.at(-1) : undefined
    if (shared !== undefined) {
      this.#last++
      return shared.promise
    }
    const another = Promise.withResolvers<Out>()
    this.#together.push(another)
    this.#last = 1
    return another.promise
  }

  #leave(waiter: Waiter<Out>): void {
    this.#leavers.delete(waiter)
    waiter.reject(waiter.signal.reason)
    // Some are told turns after the landing: the call is over then, and whoever leaves does not abort it.
    if (this.#landed || this.#together.length > 0 || this.#leavers.size > 0) return
    const error = new DOMException('Everyone who waited for this call has left', 'AbortError')
    this.#land({ end: 'abandoned', error })
    this.#call.abort(error)
  }

  #land(landing: Landing<Out>): void {
    if (this.#landed) return
    this.#landed = true
    clearTimeout(this.#timer)
    this.#onLanded(landing)
    this.#tell(landing)
  }

  /** The next of those aboard; the others in the turns that follow. */
  #tell(landing: Landing<Out>): void {
    const shared = this.#together.shift()
    if (shared !== undefined) settle(shared, landing)
    else this.#tellLeavers(landing)
    if (this.#together.length > 0 || this.#leavers.size > 0) setImmediate(() => this.#tell(landing))
  }

  #tellLeavers(landing: Landing<Out>): void {
    let told = 0
    for (const waiter of this.#leavers) {
      if (told++ === STRETCH) return
      this.#leavers.delete(waiter)
      waiter.signal.removeEventListener('abort', waiter.leave)
      settle(waiter, landing)
    }
  }
}

function settle<Out>({ resolve, reject }: Pick<Waiter<Out>, 'resolve' | 'reject'>, landing: Landing<Out>): void {
  if (landing.end === 'answered') resolve(landing.value)
  else reject(landing.error)
}
