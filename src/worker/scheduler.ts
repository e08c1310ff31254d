/**
 * Fires the schedules that a sweep tells of. A store compares times, and this process computes them: it asks the store to
 * move a schedule on from the time that is due, and to push the jobs of that time in the same commit. Any number of
 * processes may ask; one is heard. A process that ends before it asks has changed nothing.
 */
import type { Store, Swept } from '../store.ts'
import { MillpondError } from '../values/errors.ts'
import { firingOf } from '../values/schedules/firing.ts'

export interface SchedulerEvents {
  full(queue: string): void
  trouble(error: MillpondError): void
}

export class Scheduler {
  readonly #store: Store
  readonly #events: SchedulerEvents

  constructor(store: Store, events: SchedulerEvents) {
    this.#store = store
    this.#events = events
  }

  /**
   * @returns the ms after which to sweep again: the first of these schedules is due, or there are more; null: none fires again
   * Rejects as `fire` does; nothing was fired then, or only the answer was lost. The next sweep tells of what is due.
   */
  async fire({ now, due }: NonNullable<Swept['schedules']>): Promise<number | null> {
    const firings = due.flatMap((record) => {
      try {
        return firingOf(record, now)
      } catch (error) {
        // A line of another version must not keep the others from firing.
        const why = error instanceof Error ? error.message : 'its times cannot be computed'
        this.#events.trouble(new MillpondError('InvalidOption', `schedule ${record.name} cannot fire: ${why}`))
        return []
      }
    })
    if (firings.length === 0) return null
    const outcomes = await this.#store.operations.fire({ firings })
    let wait: number | null = null
    for (const [index, outcome] of outcomes.entries()) {
      const { next = null, jobs = [] } = firings[index] ?? {}
      if (outcome.status === 'full') this.#events.full(jobs[0]?.queue ?? '')
      if (outcome.status === 'fired' && next !== null)
        wait = Math.min(wait ?? Number.POSITIVE_INFINITY, Math.max(0, next - now))
    }
    return wait
  }
}
