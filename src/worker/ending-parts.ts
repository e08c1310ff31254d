/** Endings by the part of the store that gave the claim: a part that does not answer holds up no other's endings. */
import type { Store } from '../store.ts'
import type { MillpondError } from '../values/errors.ts'
import type { Attempt } from './attempt.ts'
import type { Untold } from './ending.ts'
import { EndingBatches, type EndingOutcome } from './ending-batches.ts'

export class EndingParts {
  readonly #store: Store
  readonly #make: () => EndingBatches
  readonly #parts = new Map<string, EndingBatches>()
  /** Of a store without parts. */
  readonly #only: EndingBatches | undefined

  /** As of `EndingBatches`. */
  constructor(
    store: Store,
    queue: string,
    told: (ending: Untold, outcome: EndingOutcome) => void,
    trouble: (error: MillpondError) => void,
  ) {
    this.#store = store
    this.#make = () => new EndingBatches(store, queue, told, trouble)
    if (store.parts === undefined) this.#only = this.#make()
  }

  add(ending: Untold): void {
    const batches = this.#only ?? this.#part(this.#store.parts?.ofClaim(ending.attempt.claimed) ?? '')
    batches.add(ending)
  }

  get attempts(): Attempt[] {
    return this.#all.flatMap(({ attempts }) => attempts)
  }

  flush(): void {
    if (this.#only !== undefined) this.#only.flush()
    else for (const batches of this.#parts.values()) batches.flush()
  }

  async flushed(): Promise<void> {
    await Promise.all(this.#all.map((batches) => batches.flushed()))
  }

  /** @returns how many endings */
  abandon(): number {
    return this.#all.reduce((sum, batches) => sum + batches.abandon(), 0)
  }

  get #all(): EndingBatches[] {
    return this.#only === undefined ? [...this.#parts.values()] : [this.#only]
  }

  #part(name: string): EndingBatches {
    let batches = this.#parts.get(name)
    if (batches === undefined) {
      batches = this.#make()
      this.#parts.set(name, batches)
    }
    return batches
  }
}
