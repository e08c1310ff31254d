import type { Bell, Store } from '../store.ts'

/** Listens to the store's bells while a part of the pond needs them: each worker, the results, the pushes that wait for room. */
export class BellListener {
  readonly #store: Store
  readonly #rung: (bell: Bell) => void
  #needs = 0
  #unlisten: (() => void) | undefined

  constructor(store: Store, rung: (bell: Bell) => void) {
    this.#store = store
    this.#rung = rung
  }

  need(): void {
    this.#needs++
    this.#unlisten ??= this.#store.listen(this.#rung)
  }

  /** A part that has called `need` needs them no more. */
  release(): void {
    this.#needs--
    if (this.#needs <= 0) this.close()
  }

  close(): void {
    this.#unlisten?.()
    this.#unlisten = undefined
  }
}
