/** Counts what is done to the jobs of a store, so that a test can tell when nothing happens any more. */

import type { OperationName, Store } from '../store.ts'
import { around } from '../stores/around.ts'

/** Readings and reports, which go on by real time, are no activity. */
const IDLE: ReadonlySet<OperationName> = new Set<OperationName>([
  ...(['extend', 'sweep', 'find', 'outcomes', 'list', 'groups', 'ahead', 'relatives', 'stats', 'record'] as const),
  ...(['settings', 'heartbeat', 'workers'] as const),
])

export class Activity {
  /** Grows with each beginning and each end of a call. */
  count = 0
  #underWay = 0

  get isUnderWay(): boolean {
    return this.#underWay > 0
  }

  counted(store: Store): Store {
    return around(store, (name, input, next) => (IDLE.has(name) ? next(input) : this.#during(next(input))))
  }

  #during<Out>(call: Promise<Out>): Promise<Out> {
    this.count++
    this.#underWay++
    return call.finally(() => {
      this.count++
      this.#underWay--
    })
  }
}
