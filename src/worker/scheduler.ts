/**
 * Fires the schedules that a sweep tells of. A store compares times, and this process computes them: it asks the store to
 * move a schedule on from the time that is due, and to push the jobs of that time in the same commit. Any number of
 * processes may ask; one is heard. A process that ends before it asks has changed nothing.
 */

import { isRefusal, splitting } from '../batch/splitting.ts'
import type { Store } from '../store.ts'
import { isSealed } from '../values/encoding/sealed-form.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Swept } from '../values/operations/swept.ts'
import { firingOf, firstHalf } from '../values/schedules/firing.ts'
import type { Firing, ScheduleRecord } from '../values/schedules/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

const MOST_DUE = DEFAULTS.schedule.due
/** Of a call, as of a push. A firing that has more goes alone. */
const { maxItems: MOST_JOBS, maxBytes: MOST_BYTES } = DEFAULTS.producer

export class Scheduler {
  readonly #store: Store
  readonly #onTrouble: (error: MillpondError) => void
  /** The name after which `#others` goes on. */
  #after: string | undefined

  constructor(store: Store, onTrouble: (error: MillpondError) => void) {
    this.#store = store
    this.#onTrouble = onTrouble
  }

  /**
   * @returns the ms until the first of these schedules is due again; Infinity: none of them is
   * Rejects as `fire` does; nothing was fired then, or only the answer was lost. The next sweep tells of what is due.
   */
  async fire({ now, due }: NonNullable<Swept['schedules']>): Promise<number> {
    const { fired, wait } = await this.#fireAll(due, now)
    if (due.length < MOST_DUE) return wait
    // There may be more, which the sweep had no place for.
    if (fired > 0) return 0
    const others = await this.#fireAll(await this.#others(due, now), now)
    return others.wait
  }

  /** A page of all schedules, without those of the sweep. Where none of those can fire, the next sweep tells of the same ones. */
  async #others(told: readonly ScheduleRecord[], now: number): Promise<ScheduleRecord[]> {
    const after = this.#after === undefined ? {} : { after: this.#after }
    const page = await this.#store.operations.schedules({ limit: MOST_DUE, ...after })
    this.#after = page.length < MOST_DUE ? undefined : page.at(-1)?.name
    const names = new Set(told.map(({ name }) => name))
    return page.filter(({ name, paused, nextAt }) => !(paused || nextAt === null || nextAt > now || names.has(name)))
  }

  /** @returns how many calls for one of them have fired, and the ms until the first of these is due again */
  async #fireAll(due: readonly ScheduleRecord[], now: number): Promise<{ fired: number; wait: number }> {
    let fired = 0
    let wait = Number.POSITIVE_INFINITY
    let firings = this.#firingsOf(due, now)
    while (firings.length > 0) {
      const smaller: Firing[] = []
      for (const call of callsOf(firings)) {
        const fire = (some: readonly Firing[]) => this.#store.operations.fire({ firings: some })
        const outcomes = await splitting(call, fire, 'firing', { divides })
        for (const [index, firing] of call.entries()) {
          const outcome = outcomes[index]
          let half: Firing | undefined
          if (outcome instanceof MillpondError) half = this.#afterError(firing, outcome)
          else if (outcome?.status === 'fired') {
            fired++
            if (firing.next !== null) wait = Math.min(wait, Math.max(0, firing.next - now))
          } else if (outcome?.status === 'full') {
            half = firstHalf(firing)
            if (half === undefined) this.#onTrouble(waitsForRoom(firing))
          }
          if (half !== undefined) smaller.push(half)
        }
      }
      firings = smaller
    }
    return { fired, wait }
  }

  /** @returns what to fire instead */
  #afterError(firing: Firing, error: MillpondError): Firing | undefined {
    if (!divides(error)) throw error
    const half = isRefusal(error) ? undefined : firstHalf(firing)
    if (half === undefined) this.#onTrouble(notFired(firing, error))
    return half
  }

  #firingsOf(due: readonly ScheduleRecord[], now: number): Firing[] {
    return due.flatMap((record) => {
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
  }
}

/** Where the store is busy, the call had too much to do, or one of its schedules, keys or queues is held. */
const divides = (error: MillpondError): boolean => error.code === 'StoreBusy' || isRefusal(error)

function notFired({ name }: Firing, error: MillpondError): MillpondError {
  const what = isRefusal(error) ? 'cannot fire' : 'fires later'
  return new MillpondError(error.code, `schedule ${name} ${what}: ${error.message}`, { cause: error })
}

/** Cut so that one call carries them. */
function callsOf(firings: readonly Firing[]): Firing[][] {
  const calls: Firing[][] = []
  let jobs = 0
  let bytes = 0
  for (const firing of firings) {
    const size = firing.jobs.reduce((sum, { data }) => sum + data.body.length, 0)
    jobs += firing.jobs.length
    bytes += size
    const last = calls.at(-1)
    if (last !== undefined && jobs <= MOST_JOBS && bytes <= MOST_BYTES) last.push(firing)
    else {
      calls.push([firing])
      jobs = firing.jobs.length
      bytes = size
    }
  }
  return calls
}

function waitsForRoom({ name, jobs }: Firing): MillpondError {
  return new MillpondError('QueueFull', `schedule ${name} waits for room: queue ${jobs[0]?.queue} is full`)
}
