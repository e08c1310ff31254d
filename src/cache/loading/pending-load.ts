/**
 * A load under way, from the look into Redis until the value is stored. It hears what happens to its key meanwhile:
 *
 *   touched    the key may have changed in Redis: who waits for another process looks again, who holds the lock checks it
 *   cancelled  the value would be older than an invalidation: the load is aborted and begun anew
 *
 * After `MAX_RESTARTS` the load is left to go on. Its value goes to those who wait and is kept nowhere; later callers
 * get a load of their own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Entry } from '../memory/entry.ts'
import type { Tag } from '../memory/tags.ts'
import type { TagMarker } from '../redis/stored-value.ts'

const MAX_RESTARTS = 4
const NEVER = new AbortController().signal
const INVALIDATED = new DOMException('The value was invalidated while it was loaded', 'AbortError')

export class PendingLoad {
  readonly key: string
  /** Taken, so that what is heard of them is not lost. */
  readonly tags: readonly Tag[]
  /** Under which its value will be stored. */
  markers: readonly TagMarker[] = []
  /** What Redis had, good or not. */
  found: Entry | undefined
  touched = false
  cancelled = false
  /** While the lock is ours: asks Redis whether it still is. */
  checkLock: (() => void) | undefined
  readonly #signal: AbortSignal
  readonly #onLast: (() => void) | undefined
  #call = new AbortController()
  #wake: AbortController | undefined
  #restarts = 0

  /** @param signal ends all of it @param onLast called when later callers should not wait for this load */
  constructor(key: string, tags: readonly Tag[], signal: AbortSignal = NEVER, onLast?: () => void) {
    this.key = key
    this.tags = tags
    this.#signal = signal
    this.#onLast = onLast
  }

  get tagNames(): readonly string[] {
    return this.tags.map(({ name }) => name)
  }

  /** Whether it may not be begun anew once more. */
  get last(): boolean {
    return this.#restarts >= MAX_RESTARTS
  }

  begin(): void {
    this.touched = false
    this.markers = []
    if (!this.cancelled) return
    this.cancelled = false
    this.#restarts++
    this.#call = new AbortController()
  }

  touch(): void {
    this.touched = true
    this.#wake?.abort()
    this.checkLock?.()
  }

  cancel(): void {
    this.cancelled = true
    this.#wake?.abort()
    if (this.last) this.#onLast?.()
    else this.#call.abort(INVALIDATED)
  }

  /** Resolves to what `call` returns. Rejects as soon as the load is aborted, even if `call` ignores its signal. */
  async run<T>(call: (signal: AbortSignal) => T | PromiseLike<T>): Promise<T> {
    const signal = AbortSignal.any([this.#signal, this.#call.signal])
    signal.throwIfAborted()
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    try {
      return await Promise.race([call(signal), aborted])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Until it is touched, cancelled or ended, or the time is over. */
  async wait(ms: number): Promise<void> {
    if (this.touched || this.cancelled) return
    this.#wake = new AbortController()
    const signal = AbortSignal.any([this.#signal, this.#wake.signal])
    await sleep(ms, undefined, { signal }).catch(() => undefined)
  }

  throwIfEnded(): void {
    this.#signal.throwIfAborted()
  }
}
