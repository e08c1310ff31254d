/** One of the stores. It may be away, also when the others are opened: it is opened by a later call then. */
import type { Bell, Operations, Store } from '../../store.ts'
import { MillpondError, storeError } from '../../values/errors/errors.ts'

/** Milliseconds that a call to all waits for a store that was away at the last one. */
const PATIENCE = 100

export class Member {
  /** Such as `shard 2 of 3`, for messages. */
  readonly name: string
  readonly #open: () => Promise<Store>
  readonly #listeners = new Map<(bell: Bell) => void, (() => void) | undefined>()
  #store: Store | undefined
  #opening: Promise<Store> | undefined
  #away: MillpondError | undefined
  #isClosed = false

  constructor(name: string, open: () => Promise<Store>) {
    this.name = name
    this.#open = open
  }

  /** Unset: it could not be opened yet. */
  get store(): Store | undefined {
    return this.#store
  }

  async opened(): Promise<Store> {
    if (this.#isClosed) throw this.#closed()
    this.#opening ??= this.#open().then(
      (store) => {
        for (const listener of this.#listeners.keys()) this.#listeners.set(listener, store.listen(listener))
        this.#store = store
        return store
      },
      (error: unknown) => {
        this.#opening = undefined
        throw this.#named(error)
      },
    )
    return this.#opening
  }

  /** About its own queues. An open store is called at once, so that calls keep their order. */
  call<T>(use: (operations: Operations) => Promise<T>): Promise<T> {
    return this.#store === undefined
      ? this.opened().then((store) => use(store.operations))
      : use(this.#store.operations)
  }

  /** With others, who must not wait long for one that is away. Errors name it. */
  async ask<T>(use: (operations: Operations) => Promise<T>): Promise<T> {
    const away = this.#away
    const answer = this.call(use).then(
      (value) => {
        this.#away = undefined
        return value
      },
      (error: unknown) => {
        const named = this.#named(error)
        this.#away = named.code === 'StoreUnavailable' ? named : undefined
        throw named
      },
    )
    if (away === undefined) return answer
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(away), PATIENCE)
    return Promise.race([answer, promise]).finally(() => clearTimeout(timer))
  }

  listen(listener: (bell: Bell) => void): () => void {
    if (this.#isClosed) throw this.#closed()
    // A function of its own, so that one who listens twice also stops twice.
    const own = (bell: Bell) => listener(bell)
    this.#listeners.set(own, this.#store?.listen(own))
    return () => {
      this.#listeners.get(own)?.()
      this.#listeners.delete(own)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const store = await this.#opening?.catch(() => undefined)
    await store?.close()
  }

  #closed(): MillpondError {
    return new MillpondError('Closed', 'the store is closed')
  }

  #named(error: unknown): MillpondError {
    const { code, message } = storeError(error, 'the call')
    if (code === 'Closed' || message.startsWith(this.name)) return storeError(error, 'the call')
    return new MillpondError(code, `${this.name}: ${message}`, { cause: error })
  }
}
