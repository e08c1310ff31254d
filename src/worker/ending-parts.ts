/** Endings by the part of the store that gave the claim: a part that does not answer holds up no other's endings. */
import type { Store } from '../store.ts'
import type { MillpondError } from '../values/errors/errors.ts'
import type { Attempt } from './attempt.ts'
import type { Untold } from './ending.ts'
import { EndingBatches, type EndingOutcome } from './ending-batches.ts'

export class EndingParts {
  readonly #store: Store
  readonly #make: () => EndingBatches
  /** A store without parts has one, of the name ''. */
  readonly #parts = new Map<string, EndingBatches>()

  /** As of `EndingBatches`. */
  constructor(
    store: Store,
    queue: string,
    told: (ending: Untold, outcome: EndingOutcome) => void,
    trouble: (error: MillpondError) => void,
  ) {
    this.#store = store
    this.#make = () => new EndingBatches(store, queue, told, trouble)
  }

  add(ending: Untold): void {
    const name = this.#store.parts?.ofClaim(ending.attempt.claimed) ?? ''
    let part = this.#parts.get(name)
    if (part === undefined) {
      part = this.#make()
      this.#parts.set(name, part)
    }
    part.add(ending)
  }

  get attempts(): Attempt[] {
    return [...this.#parts.values()].flatMap(({ attempts }) => attempts)
  }

  flush(): void {
    for (const part of this.#parts.values()) part.flush()
  }

  async flushed(): Promise<void> {
    await Promise.all([...this.#parts.values()].map((part) => part.flushed()))
  }

  abandon(): void {
    for (const part of this.#parts.values()) part.abandon()
  }
}
