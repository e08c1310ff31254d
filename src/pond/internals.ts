import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { PondEmitter } from '../values/jobs/events.ts'
import type { JobInfo } from '../values/jobs/job.ts'
import type { NewJob } from '../values/jobs/records.ts'
import type { Duration } from '../values/time/duration.ts'
import type { Sweeper } from '../worker/sweeper.ts'
import type { WorkerOwner } from '../worker/worker.ts'
import type { CapacityWaiters } from './capacity-waiters.ts'
import type { KnownSettings } from './known-settings.ts'
import type { PondWorkers } from './pond-workers.ts'
import type { Pusher } from './push/pusher.ts'
import type { UnsettledPushes } from './push/unsettled-pushes.ts'

export interface ResultOptions {
  /** How long to wait; 0 to 24 days, no limit unless given. */
  timeout?: Duration | undefined
  /** Stops waiting; the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

/** A pond, as far as jobs are looked at there. */
export interface JobReader {
  job(id: string): Promise<JobInfo | undefined>
  result(id: string, options?: ResultOptions): Promise<unknown>
  /** Aborted when the pond begins to close. */
  readonly stopping?: AbortSignal
}

/** What queues and workers need of their pond. */
export interface PondInternals extends WorkerOwner {
  readonly pond: JobReader
  readonly store: Store
  readonly events: PondEmitter
  readonly maxPayload: number
  /** What the store was told of queues. */
  readonly settings: KnownSettings
  readonly pusher: Pusher
  readonly workers: PondWorkers
  readonly sweeper: Sweeper
  readonly capacityWaiters: CapacityWaiters
  readonly unsettled: UnsettledPushes
  /** @throws Closed once no handler runs any more */
  assertOpen(): void
  /** @throws Closed as soon as the pond closes */
  assertClaiming(): void
  /** A push that is not with the pusher yet: closing waits for it. */
  pending<T>(push: Promise<T>): Promise<T>
  pushed(job: NewJob, id: string, existing: boolean): void
}

const internals = new WeakMap<object, PondInternals>()

export function registerInternals(pond: object, own: PondInternals): void {
  internals.set(pond, own)
}

/**
 * For what ships with the package and stands above the pond: the dashboard, metrics, `millpond/testing`. No entry point of the package
 * exports this, so none of it is public API.
 * @param pond a `Millpond` @throws InvalidOption
 */
export function internalsOf(pond: object): PondInternals {
  const own = internals.get(pond)
  if (own === undefined) throw new MillpondError('InvalidOption', 'not a pond, as Millpond.open returns it')
  return own
}
