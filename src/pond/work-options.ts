/** The options of `queue.work`, and what a worker makes of them. */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { PondEmitter } from '../values/jobs/events.ts'
import { lacking, needs } from '../values/operations/capabilities.ts'
import type { Lane } from '../values/operations/requests.ts'
import { checkOptions, isBoolean, isDuration, isInteger, type Rules } from '../values/options/options.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import type { BatchSettings } from '../worker/batch-slots.ts'
import { Lanes } from '../worker/lanes.ts'
import { Replica } from '../worker/replica.ts'
import { type IsolateOptions, isIsolate, processesOf } from './isolate-options.ts'

export interface WorkOptions {
  /** How many handlers run at once; 1 to 100,000, 10 unless set. */
  concurrency?: number | undefined
  /** A job is claimed ahead only if it is expected to start within this; 0 to 24 days, 50 ms unless set. 0: never ahead. */
  window?: Duration | undefined
  /**
   * Keeps slots free for urgent jobs: of `concurrency` slots, jobs with a priority below a lane's `minPriority` hold
   * none of its `reserve`. Jobs at or above it may hold every slot. A worker with lanes claims nothing ahead. None
   * unless set. A store that cannot claim by priority (`capabilities.priorities`) rejects them with `NotSupported`.
   */
  lanes?: readonly Lane[] | undefined
  /**
   * Run each handler in a transaction that commits with the job's completion; see `ctx.tx`. false unless set. A store without transactions
   * (`capabilities.transactions`) rejects true with `NotSupported`.
   */
  transaction?: boolean | undefined
  /**
   * A streaming replica of the store's database: a URL, or a client as the store's `client` takes. A handler starts once the replica shows
   * everything that was committed before the job was pushed; see `ctx.replica`. Unset: no replica. A store without replicas
   * (`capabilities.replicas`) rejects it with `NotSupported`.
   */
  replica?: unknown
  /** How long a job waits for the replica; then its handler reads the primary. 0 to 24 days, 5 s unless set. Only with `replica`. */
  replicaTimeout?: Duration | undefined
  /** Makes the handler one for batches; see `BatchWorkOptions`. */
  batch?: undefined
  /** Goes with the URL of a module; see `IsolatedWorkOptions`. */
  isolate?: undefined
}

/** The handler gets several jobs at once; see `BatchHandler`. Not with `lanes` or `replica`. */
export interface BatchWorkOptions {
  batch: BatchJobOptions
  /** How many batches run at once; 1 to 100,000, 1 unless set. */
  concurrency?: number | undefined
  /**
   * How long jobs for which no batch becomes free are held beyond `batch.within`, as happens with `sameGroup`; then
   * they are given back. 0 to 24 days, 50 ms unless set.
   */
  window?: Duration | undefined
  /** Run each batch in a transaction that commits with the completions; see `BatchContext.tx`. false unless set. As in `WorkOptions`. */
  transaction?: boolean | undefined
  /** Goes with the URL of a module; see `IsolatedWorkOptions`. */
  isolate?: undefined
}

/**
 * The handler is the default export of a module, which runs in processes of its own. `transaction` and `replica` are refused with
 * `NotSupported`: a connection of the store does not reach into another process.
 */
export interface IsolatedWorkOptions extends Pick<WorkOptions, 'window' | 'lanes'> {
  isolate: IsolateOptions
  /** How many processes there are at most, each with one job or batch at a time; 1 to 1,000, the number of CPU cores unless set. */
  concurrency?: number | undefined
  /** Makes the handler one for batches; see `BatchWorkOptions`. */
  batch?: BatchJobOptions | undefined
}

export interface BatchJobOptions {
  /** Most jobs in a batch; 1 to 10,000. */
  max: number
  /**
   * How long a batch waits to become fuller, from the arrival of its first job. 0 to 24 days, less than half of the
   * queue's lease; 0 unless set: not at all. A claim that is under way is waited for in any case.
   */
  within?: Duration | undefined
  /** A batch of so many jobs waits no longer; 1 to `max`. If not set: `max` with `within`, else 1. */
  min?: number | undefined
  /** A batch has jobs of one group only; the jobs without a group are one. false unless set. */
  sameGroup?: boolean | undefined
}

const WORK_RULES: Rules<Given> = {
  concurrency: isInteger(1, 100_000),
  window: isDuration(0),
  lanes: (value) => (Array.isArray(value) && value.every(isLane)) || 'an array of lanes',
  transaction: isBoolean,
  // The store checks it.
  replica: () => true,
  replicaTimeout: isDuration(0),
  batch: (value) => checkOptions(value as BatchJobOptions, BATCH_RULES, 'batch', ['max']) !== null,
  isolate: isIsolate,
}
const BATCH_RULES: Rules<BatchJobOptions> = {
  max: isInteger(1, 10_000),
  within: isDuration(0),
  min: isInteger(1, 10_000),
  sameGroup: isBoolean,
}
const LANE_RULES: Rules<Lane> = { minPriority: isInteger(1, 9), reserve: isInteger(1, 100_000) }
const isLane = (value: unknown) =>
  checkOptions(value as Lane, LANE_RULES, 'a lane', ['minPriority', 'reserve']) !== null

type Given = Omit<WorkOptions, 'batch' | 'isolate'> & {
  batch?: BatchJobOptions | undefined
  isolate?: IsolateOptions | undefined
}

/** @param lease of the queue, in milliseconds @throws InvalidOption, NotSupported */
export function workSettings(
  queue: string,
  options: Given | undefined,
  lease: number,
  store: Store,
  events: PondEmitter,
) {
  const where = `work on ${queue}`
  const given = checkOptions(options, WORK_RULES, where)
  const batch = batchOf(where, given, lease)
  const { isolate, transaction = false } = given
  const concurrency = isolate === undefined ? slotsOf(given) : processesOf(where, given)
  if (transaction && store.transactions === undefined) throw lacking(store, 'transactions', 'transaction: true')
  return {
    concurrency,
    // A job that waits for a fuller batch is not late.
    window: milliseconds(given.window ?? DEFAULTS.worker.window, 'window') + (batch?.within ?? 0),
    lanes: lanesOf(given, concurrency, store),
    batch,
    isolate,
    transaction,
    replica: replicaOf(where, given, store, events),
  }
}

const slotsOf = ({ concurrency, batch }: Given): number =>
  concurrency ?? (batch === undefined ? DEFAULTS.worker.concurrency : DEFAULTS.worker.batchConcurrency)

function batchOf(where: string, given: Given, lease: number): BatchSettings | undefined {
  if (given.batch === undefined) return undefined
  for (const option of ['lanes', 'replica', 'replicaTimeout'] as const) {
    if (given[option] !== undefined)
      throw new MillpondError('InvalidOption', `${where}: ${option} does not go with batch`)
  }
  const { max, within: wait = 0, sameGroup = false } = given.batch
  const within = milliseconds(wait, 'batch.within')
  const { min = within > 0 ? max : 1 } = given.batch
  if (min > max) throw new MillpondError('InvalidOption', `${where}: batch.min is ${min}, more than batch.max, ${max}`)
  if (within >= lease / 2) {
    const message = `${where}: batch.within must be less than half of the lease of ${lease} ms; got ${within} ms`
    throw new MillpondError('InvalidOption', message)
  }
  return { max, min, within, sameGroup }
}

function lanesOf({ lanes = [] }: Given, concurrency: number, store: Store): Lanes | undefined {
  if (lanes.length === 0) return undefined
  needs(store, 'priorities', 'lanes')
  return new Lanes(lanes, concurrency)
}

function replicaOf(
  where: string,
  { replica, replicaTimeout }: Given,
  store: Store,
  events: PondEmitter,
): Replica | undefined {
  if (replica === undefined) {
    if (replicaTimeout === undefined) return undefined
    throw new MillpondError('InvalidOption', `${where}: replicaTimeout goes with replica`)
  }
  if (store.replicas === undefined) throw lacking(store, 'replicas', 'replica')
  const limit = milliseconds(replicaTimeout ?? DEFAULTS.worker.replica, 'replicaTimeout')
  return new Replica(store.replicas.open(replica), limit, (error) => events.trouble(error))
}
