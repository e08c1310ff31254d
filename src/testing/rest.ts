/**
 * Waits until nothing happens any more at this moment of the clock: no call of the store is under way, no handler runs, and no job waits
 * that a worker could start. It looks once per turn of the event loop, since a worker plans its calls for the end of a turn.
 */

import timers from 'node:timers/promises'
import type { Forecast, HeldClaim } from '../stores/movable.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Worker } from '../worker/worker.ts'
import type { Activity } from './activity.ts'

/** Turns without activity before nothing is believed to follow. */
const QUIET_TURNS = 4
/** After so many turns it looks once per millisecond: a handler waits for something outside. */
const BUSY_TURNS = 50

// Fake timers that a test installs later must not stop these.
const { setImmediate: nextTurn, setTimeout: pause } = timers
const now = performance.now.bind(performance)

export interface RestTerms {
  /** Milliseconds without activity after which a handler that still runs is no longer waited for; null: handlers are waited for. */
  patience: number | null
  /** Milliseconds until `NoRest`. */
  timeout: number
}

export class Rest {
  readonly #activity: Activity
  readonly #forecast: Forecast
  readonly #workers: () => readonly Worker[]
  readonly #flushed: () => Promise<void>
  /** Claims and queues that were waited for in vain. */
  readonly #hung = new Set<string>()

  /** @param flushed resolves when the store has the pushes that were made */
  constructor(activity: Activity, forecast: Forecast, workers: () => readonly Worker[], flushed: () => Promise<void>) {
    this.#activity = activity
    this.#forecast = forecast
    this.#workers = workers
    this.#flushed = flushed
  }

  /** @throws NoRest */
  async reached({ patience, timeout }: RestTerms): Promise<void> {
    const began = now()
    let seen = this.#activity.count
    let seenAt = began
    let quiet = 0
    for (;;) {
      await this.#flushed()
      if (quiet < BUSY_TURNS) await nextTurn()
      else await pause(1)
      quiet++
      if (seen !== this.#activity.count || this.#activity.isUnderWay) {
        seen = this.#activity.count
        seenAt = now()
        quiet = 0
        if (seenAt - began > timeout) throw this.#noRest(timeout)
      }
      if (quiet < QUIET_TURNS) continue
      const expected = this.#expected(patience !== null)
      if (expected.length === 0) return
      if (patience !== null && now() - seenAt > patience) {
        for (const { name } of expected) this.#hung.add(name)
        return
      }
      if (now() - began > timeout) throw this.#noRest(timeout)
    }
  }

  /** What is still to happen at this moment: running jobs by claim, and queues with a job for a free slot. */
  #expected(forgivesHung: boolean): { name: string; claim?: HeldClaim }[] {
    const workers = this.#workers()
    const claims = this.#forecast.held(new Set(workers.map(({ id }) => id)))
    const running = [...claims].map((claim) => ({ name: `${claim.id} ${claim.fence}`, claim }))
    const free = workers.filter(({ load }) => load.running + load.buffered < load.slots).map(({ queue }) => queue)
    const claimable = [...new Set(free)].filter((queue) => this.#forecast.isClaimable(queue))
    const expected = [...running, ...claimable.map((name) => ({ name }))]
    return forgivesHung ? expected.filter(({ name }) => !this.#hung.has(name)) : expected
  }

  #noRest(timeout: number): MillpondError {
    const expected = this.#expected(false)
    const running = expected.flatMap(({ claim }) => (claim === undefined ? [] : [`${claim.id} (${claim.queue})`]))
    const queues = expected.flatMap(({ name, claim }) => (claim === undefined ? [name] : []))
    let what = 'jobs keep coming'
    if (queues.length > 0)
      what = `no worker starts the jobs of ${listed(queues)}; if the test fakes timers, fake Date alone`
    if (running.length > 0) what = `these jobs still run: ${listed(running)}`
    return new MillpondError('NoRest', `the test pond did not come to rest within ${timeout} ms: ${what}`)
  }
}

/** The first few. */
function listed(names: readonly string[]): string {
  return names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')
}
