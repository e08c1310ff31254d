/** Ends a move at one of its steps. */
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'

export class Killed extends MillpondError {
  constructor() {
    super('Closed', 'killed')
  }
}

/** Counts the calls of both stores, and ends all of them at the n-th. */
export class Fuse {
  readonly #at: number
  readonly #when: 'before' | 'after'
  calls = 0

  constructor(at: number, when: 'before' | 'after') {
    this.#at = at
    this.#when = when
  }

  on(store: Store): Store {
    const checked = async <T>(next: () => Promise<T>): Promise<T> => {
      const call = ++this.calls
      if (call > this.#at || (call === this.#at && this.#when === 'before')) throw new Killed()
      const output = await next()
      if (call === this.#at) throw new Killed()
      return output
    }
    return around(store, (_, input, next) => checked(() => next(input)))
  }
}
