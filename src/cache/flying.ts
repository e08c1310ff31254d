/**
 * A load on its way, from the look into Redis to the value's being stored. What happens to its key meanwhile is told to it:
 *
 *   touched    something was heard of the key in Redis: whoever waits for another process looks again, whoever has the lock asks whether it still does
 *   cancelled  its value would be of before an invalidation: the load is aborted and begun anew
 *
 * After a few times the load is left to go on, and its value is given to those who wait, but kept nowhere; those who come later get a load of their own.
 */

/** How often a load is begun anew. */
const TURNS = 4

export interface TagMarker {
  name: string
  marker: string
}

/** Why a load was aborted that is begun anew. */
export const CANCELLED = new DOMException('The value was invalidated while it was loaded', 'AbortError')

export class Flying {
  readonly key: string
  readonly tags: readonly string[]
  /** Under which its value will be stored. */
  markers: readonly TagMarker[] = []
  touched = false
  cancelled = false
  /** While the lock is ours: asks whether it still is. */
  confirm: (() => void) | undefined
  readonly #signal: AbortSignal
  readonly #onLast: () => void
  #call = new AbortController()
  #wake: (() => void) | undefined
  #turns = 0

  /** @param onLast told when nobody else should wait for this one @param signal ends all of it */
  constructor(key: string, tags: readonly string[], signal: AbortSignal, onLast: () => void) {
    this.key = key
    this.tags = tags
    this.#signal = signal
    this.#onLast = onLast
  }

  /** Of the call that is under way. */
  get signal(): AbortSignal {
    return this.#call.signal
  }

  /** Whether it may be begun anew no more. */
  get last(): boolean {
    return this.#turns >= TURNS
  }

  begin(): void {
    this.touched = false
    this.markers = []
    if (!this.cancelled) return
    this.cancelled = false
    this.#turns++
    this.#call = new AbortController()
  }

  touch(): void {
    this.touched = true
    this.#wake?.()
    this.confirm?.()
  }

  cancel(): void {
    this.cancelled = true
    this.#wake?.()
    if (this.last) this.#onLast()
    else this.#call.abort(CANCELLED)
  }

  /** What `run` answers; rejects as soon as the call or the whole is aborted, even if it does not listen. */
  async heeding<T>(run: (signal: AbortSignal) => T | PromiseLike<T>): Promise<T> {
    const signal = AbortSignal.any([this.#signal, this.#call.signal])
    signal.throwIfAborted()
    const { promise, reject } = Promise.withResolvers<never>()
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    try {
      return await Promise.race([run(signal), promise])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Until it is touched, cancelled or ended, or the time is over. */
  async wait(ms: number): Promise<void> {
    if (this.touched || this.cancelled) return
    const { promise, resolve: done } = Promise.withResolvers<void>()
    const resolve = () => done()
    this.#wake = resolve
    this.#signal.addEventListener('abort', this.#wake)
    const timer = setTimeout(resolve, ms)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      this.#signal.removeEventListener('abort', resolve)
      this.#wake = undefined
    }
  }

  throwIfEnded(): void {
    this.#signal.throwIfAborted()
  }
}

/** All loads on their way, by key. */
export class Sky {
  readonly #byKey = new Map<string, Set<Flying>>()

  add(flying: Flying): void {
    const others = this.#byKey.get(flying.key)
    if (others === undefined) this.#byKey.set(flying.key, new Set([flying]))
    else others.add(flying)
  }

  remove(flying: Flying): void {
    const all = this.#byKey.get(flying.key)
    all?.delete(flying)
    if (all?.size === 0) this.#byKey.delete(flying.key)
  }

  of(key: string): Iterable<Flying> {
    return this.#byKey.get(key) ?? []
  }

  *all(): Generator<Flying> {
    for (const some of this.#byKey.values()) yield* some
  }
}
