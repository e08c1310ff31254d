/** What the passing of time alone changes in a memory store. For tests that move its clock. */

import { Groups } from './groups.ts'
import { ORIGIN } from './job.ts'
import type { MemoryQueue } from './queue.ts'
import type { MemoryState } from './state.ts'

/** A claim that holds. */
export interface HeldClaim {
  queue: string
  id: string
  fence: number
  attempt: number
}

export class Forecast {
  readonly #state: MemoryState

  constructor(state: MemoryState) {
    this.#state = state
  }

  /**
   * The next moment at which a job becomes due, a planned schedule fires, a lease ends, or a rate or pause lets a waiting job start; null:
   * time changes nothing.
   * Later than the store's clock, in milliseconds since 1970.
   * @param worked queues with workers: elsewhere nothing starts
   * @param extended workers that extend their leases for as long as they live
   */
  next(worked: ReadonlySet<string>, extended: ReadonlySet<string>): number | null {
    const now = this.#state.now()
    let next = Number.POSITIVE_INFINITY
    const consider = (at: number) => {
      if (at > now) next = Math.min(next, at)
    }
    for (const queue of this.#state.queues.values()) {
      consider(now + (queue.nextDueIn(now) ?? 0))
      for (const { worker, leaseUntil } of queue.running) if (!extended.has(worker ?? '')) consider(leaseUntil)
      if (worked.has(queue.name)) consider(now + (startsIn(queue, now) ?? 0))
    }
    consider((this.#state.schedules.due(ORIGIN + now).nextAt ?? ORIGIN) - ORIGIN)
    return next === Number.POSITIVE_INFINITY ? null : ORIGIN + next
  }

  /** Whether a claim would bring a job now. */
  isClaimable(name: string): boolean {
    const queue = this.#state.queues.get(name)
    return queue !== undefined && startsIn(queue, this.#state.now()) === 0
  }

  /** The claims of these workers. */
  *held(workers: ReadonlySet<string>): Generator<HeldClaim> {
    for (const queue of this.#state.queues.values()) {
      for (const { id, fence, attempt, worker } of queue.running) {
        if (workers.has(worker ?? '')) yield { queue: queue.name, id, fence, attempt }
      }
    }
  }

  /** Work may have become possible in any queue. */
  ring(): void {
    for (const name of this.#state.queues.keys()) this.#state.bells.ring('work', name)
  }
}

/** Milliseconds until a claim brings a job; null: not because time passes. */
function startsIn(queue: MemoryQueue, now: number): number | null {
  const { waiting } = queue
  if (queue.settings.paused || waiting.size === 0) return null
  queue.beginClaim(now)
  if (waiting instanceof Groups) waiting.beginClaim(now)
  const first = waiting.firstFrom(0)
  if (first !== null) return queue.startableIn(now, first.cost)
  return waiting instanceof Groups ? waiting.heldFor(now) : null
}
