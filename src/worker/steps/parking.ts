/**
 * When the handler of a job waits for something, its attempt ends: the job is parked. All that it waits for goes into one park, once none
 * of its steps is under way.
 *
 *   working ──a step ends, and something is waited for──► told: every wait rejects with the same error, which ends the handler
 */

import type { MillpondError } from '../../values/errors/errors.ts'
import type { NewEntry, Park } from '../../values/jobs/records.ts'
import { isError } from '../../values/runtime/realms.ts'
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

/** Ends the attempt of a parked job. It has to reach the worker. */
export class Parked extends Error {
  override readonly name = 'Parked'
  readonly #park: Park

  constructor(park: Park) {
    super('the job is parked until what it waits for has come; this error ends its attempt, so let it through')
    this.#park = park
  }

  /** Of what a handler threw: itself, or made from one. Never throws. @returns undefined: it was something else */
  static parkOf(thrown: unknown): Park | undefined {
    try {
      for (let depth = 0, at = thrown; isError(at) && depth < DEEPEST_CAUSE; depth++, at = at.cause) {
        if (#park in at) return at.#park
      }
    } catch {
      // A getter of the application's threw.
    }
    return undefined
  }
}

const DEEPEST_CAUSE = 8

/** The attempt that steps are of: also one whose handler is in another process. */
export interface StepsHost {
  readonly claimed: { readonly id: string; readonly attempt: number }
  /** Why nothing counts any more that the handler does. */
  readonly stopped: MillpondError | undefined
  /** Neither ending nor stopped. */
  readonly isOpen: boolean
  /** Its handler was told that the job is parked; undefined: it was not. */
  parking: Parked | undefined
  whenStopped(listener: (reason: MillpondError) => void): void
}

export class ParkingLot {
  readonly #attempt: StepsHost
  readonly #known: () => Pick<Park, 'signals' | 'entries'>
  readonly #waits: { wait: Wait; reject: (error: Error) => void }[] = []
  #underWay = 0

  /** @param known how many signals the worker knows, and what is to be written before all else */
  constructor(attempt: StepsHost, known: () => Pick<Park, 'signals' | 'entries'>) {
    this.#attempt = attempt
    this.#known = known
  }

  /** Never resolves: rejects when the job is parked. */
  wait(wait: Wait): Promise<never> {
    return new Promise((_, reject) => {
      this.#waits.push({ wait, reject })
      this.#look()
    })
  }

  /** While it runs, the job is not parked. @throws once it is */
  async busy<T>(work: () => Promise<T>): Promise<T> {
    const { parking } = this.#attempt
    if (parking !== undefined) throw parking
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
      if (this.#underWay === 0 && this.#attempt.parking === undefined && this.#attempt.isOpen) this.#tell()
    })
  }

  #tell(): void {
    const parked = new Parked(this.#park())
    this.#attempt.parking = parked
    for (const { reject } of this.#waits) reject(parked)
  }

  #park(): Park {
    const waits = this.#waits.map(({ wait }) => wait)
    const times = waits.flatMap(({ until }) => (until === null ? [] : [until]))
    const told = waits.map(({ kind, key, until, child }) => ({ kind, name: key, until, ...(child && { child }) }))
    const { signals, entries } = this.#known()
    return {
      signals,
      until: times.length === 0 ? null : Math.min(...times),
      after: waits.flatMap(({ child }) => (child === undefined ? [] : [child])),
      entries: [...entries, ...waits.flatMap(({ entry }) => (entry === undefined ? [] : [entry]))],
      reason: JSON.stringify({ waits: told.slice(0, MAX_TOLD), of: told.length }),
    }
  }
}

/** Waits that the reason of a park names. */
const MAX_TOLD = 20
