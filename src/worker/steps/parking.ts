/**
 * When the handler of a job waits for something, its attempt ends: the job is parked. All that it waits for goes into one park, once none
 * of its steps is under way. The promises of these waits never settle: whatever the handler would do next, it does when it is called again.
 * An error instead would be caught by a handler that wants to catch a time-out.
 */

import type { MillpondError } from '../../values/errors/errors.ts'
import type { NewEntry, Park } from '../../values/jobs/records.ts'
import type { StepKind } from './entries.ts'

/** What a handler waits for. */
export interface Wait {
  kind: StepKind
  key: string
  /** In milliseconds since 1970; null: no time ends it. */
  until: number | null
  /** The id of a job that has to end. */
  child?: string
  /** Written with the park. */
  entry?: NewEntry | undefined
}

/** The attempt that steps are of: also one whose handler is in another process. */
export interface StepsHost {
  readonly claimed: { readonly id: string; readonly attempt: number }
  /** Why nothing counts any more that the handler does. */
  readonly stopped: MillpondError | undefined
  whenStopped(listener: (reason: MillpondError) => void): void
  /** The attempt is over. */
  park(park: Park): void
}

export class ParkingLot {
  readonly #host: StepsHost
  readonly #known: () => Pick<Park, 'signals' | 'entries'>
  readonly #waits: Wait[] = []
  #underWay = 0

  /** @param known how many signals the worker knows, and what is to be written before all else */
  constructor(host: StepsHost, known: () => Pick<Park, 'signals' | 'entries'>) {
    this.#host = host
    this.#known = known
  }

  /** Never settles. */
  wait(wait: Wait): Promise<never> {
    this.#waits.push(wait)
    this.#look()
    return new Promise(() => {})
  }

  /** While it runs, the job is not parked. */
  async busy<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay++
    try {
      return await work()
    } finally {
      this.#underWay--
      this.#look()
    }
  }

  #look(): void {
    if (this.#waits.length === 0 || this.#underWay > 0) return
    // What the handler does next in this tick may be another step.
    setImmediate(() => {
      if (this.#underWay === 0 && this.#host.stopped === undefined) this.#host.park(this.#park())
    })
  }

  #park(): Park {
    const { signals, entries } = this.#known()
    const times = this.#waits.flatMap(({ until }) => (until === null ? [] : [until]))
    const waits = this.#waits.map(({ kind, key, until, child }) => ({
      kind,
      name: key,
      until,
      ...(child && { child }),
    }))
    return {
      signals,
      until: times.length === 0 ? null : Math.min(...times),
      after: this.#waits.flatMap(({ child }) => (child === undefined ? [] : [child])),
      entries: [...entries, ...this.#waits.flatMap(({ entry }) => (entry === undefined ? [] : [entry]))],
      reason: JSON.stringify({ waits: waits.slice(0, MAX_TOLD), of: waits.length }),
    }
  }
}

/** Waits that the reason of a park names. */
const MAX_TOLD = 20
