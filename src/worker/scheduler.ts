/**
 * Fires the schedules that a sweep tells of. A store compares times, and this process computes them: it asks the store to
 * move a schedule on from the time that is due, and to push the jobs of that time in the same commit. Any number of
 * processes may ask; one is heard. A process that ends before it asks has changed nothing.
 */
import type { Store, Swept } from '../store.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { MillpondError } from '../values/errors.ts'
import { firingOf } from '../values/schedules/firing.ts'
import { isSealed } from '../values/sealed-form.ts'

const MOST_DUE = DEFAULTS.schedule.due

export class Scheduler {
  readonly #store: Store
  readonly #onTrouble: (error: MillpondError) => void

  constructor(store: Store, onTrouble: (error: MillpondError) => void) {
    this.#store = store
    this.#onTrouble = onTrouble
  }

  /**
   * @returns the ms until the first of these schedules is due again; Infinity: none of them is
   * Rejects as `fire` does; nothing was fired then, or only the answer was lost. The next sweep tells of what is due.
   */
  async fire({ now, due }: NonNullable<Swept['schedules']>): Promise<number> {
    const firings = due.flatMap((record) => {
      try {
        const firing = firingOf(record, now)
        // The data are sealed to the schedule. As those of a job nobody could open them: a process with the key fires it.
        return firing.jobs.some(({ data }) => isSealed(data.body)) ? [] : firing
      } catch (error) {
        // A line of another version must not keep the others from firing.
        const why = error instanceof Error ? error.message : 'its times cannot be computed'
        this.#onTrouble(new MillpondError('InvalidOption', `schedule ${record.name} cannot fire: ${why}`))
        return []
      }
    })
    if (firings.length === 0) return Number.POSITIVE_INFINITY
    const outcomes = await this.#store.operations.fire({ firings })
    const waits = firings.map(({ name, next, jobs }, index) => {
      const status = outcomes[index]?.status
      if (status === 'full') {
        const message = `schedule ${name} waits for room: queue ${jobs[0]?.queue} is full`
        this.#onTrouble(new MillpondError('QueueFull', message))
      }
      return status === 'fired' && next !== null ? Math.max(0, next - now) : Number.POSITIVE_INFINITY
    })
    const wait = Math.min(...waits)
    // There may be more, which the sweep had no place for.
    return due.length >= MOST_DUE && outcomes.some(({ status }) => status === 'fired') ? 0 : wait
  }
}
