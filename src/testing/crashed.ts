/**
 * Workers that were "killed". A handler cannot be killed in JavaScript, so it may go on; but the store never hears of its end. The claims
 * stay until their leases end by the store's clock, as after a real kill.
 */

import type { OfQueue, Store } from '../store.ts'
import type { HeldClaim } from '../stores/movable.ts'

type Claim = Pick<HeldClaim, 'id' | 'fence'>

export class Crashed {
  readonly #workers = new Set<string>()
  readonly #claims = new Set<string>()

  add(workers: Iterable<string>, claims: Iterable<Claim>): void {
    for (const worker of workers) this.#workers.add(worker)
    for (const claim of claims) this.#claims.add(nameOf(claim))
  }

  /** The store, which does not hear of the dead. */
  deaf(store: Store): Store {
    const { operations } = store
    return {
      ...store,
      operations: {
        ...operations,
        claim: (input) => operations.claim(this.#workers.has(input.worker) ? { ...input, limit: 0 } : input),
        complete: this.#unlessDead(operations.complete),
        fail: this.#unlessDead(operations.fail),
        release: this.#unlessDead(operations.release),
        extend: this.#unlessDead(operations.extend),
        heartbeat: ({ workers, gone }) =>
          operations.heartbeat({ workers, gone: gone.filter((worker) => !this.#workers.has(worker)) }),
      },
    }
  }

  #unlessDead<In extends OfQueue<Claim>, Out>(operation: (input: In) => Promise<Out[]>) {
    return async (input: In): Promise<(Out | 'stale')[]> => {
      const live = input.items.filter((item) => !this.#claims.has(nameOf(item)))
      if (live.length === input.items.length) return operation(input)
      const outcomes = live.length === 0 ? [] : await operation({ ...input, items: live })
      const left = outcomes.values()
      return input.items.map((item) => (this.#claims.has(nameOf(item)) ? 'stale' : (left.next().value ?? 'stale')))
    }
  }
}

const nameOf = ({ id, fence }: Claim) => `${id} ${fence}`
