/**
 * Calls that the function of a batch makes to the batch itself. They may wait for a group to end that waits for them:
 * then nothing goes on for ever. That is so when as many groups are under way as may, and each of them has such a call
 * that was not answered.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { MillpondError } from '../values/errors/errors.ts'

interface Group {
  /** Calls from inside that were not answered yet. */
  unanswered: number
}

export class NestedCalls {
  readonly #most: number
  readonly #underWay = new Set<Group>()
  readonly #inside = new AsyncLocalStorage<Group>()

  /** @param most groups that may be under way at once */
  constructor(most: number) {
    this.#most = most
  }

  /** Runs the function for a group. */
  async run<T>(fn: () => PromiseLike<T> | T): Promise<T> {
    const group: Group = { unanswered: 0 }
    this.#underWay.add(group)
    try {
      return await this.#inside.run(group, fn)
    } finally {
      this.#underWay.delete(group)
    }
  }

  /** Makes a call, from wherever it comes. @throws BatchRecursion */
  call<T>(make: () => Promise<T>): Promise<T> {
    const group = this.#inside.getStore()
    // What a group has left behind, such as a connection, may still call when the group is over.
    if (group === undefined || !this.#underWay.has(group)) return make()
    const isStuck = (other: Group) => other === group || other.unanswered > 0
    if (this.#underWay.size >= this.#most && [...this.#underWay].every(isStuck)) {
      const message =
        'batch: its function calls the batch itself and would wait for its own end; load such items directly, or with another batch'
      throw new MillpondError('BatchRecursion', message)
    }
    group.unanswered++
    const call = make()
    const over = () => void group.unanswered--
    call.then(over, over)
    return call
  }
}
