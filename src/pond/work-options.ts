/** The options of `queue.work`, and what a worker makes of them. */
import type { Store } from '../store.ts'
import { type Duration, LONGEST_TIMER, milliseconds } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { checkOptions, isBoolean, isInteger, type Rules } from '../values/options.ts'
import { type Lane, Lanes } from '../worker/lanes.ts'
import { Replica } from '../worker/replica.ts'
import type { PondEmitter } from './events.ts'

export interface WorkOptions {
  /** How many handlers run at once; 1 to 100,000, 10 unless set. */
  concurrency?: number
  /** A job is claimed ahead only if it is expected to start within this; 0 to 24 days, 50 ms unless set. 0: never ahead. */
  window?: Duration
  /**
   * Keeps slots free for urgent jobs: of `concurrency` slots, jobs with a priority below a lane's `minPriority` hold none of its `reserve`. Jobs at or
   * above it may hold every slot. A worker with lanes claims nothing ahead. None unless set. A store that cannot claim by priority
   * (`capabilities.limits`) rejects them with `NotSupported`.
   */
  lanes?: readonly Lane[]
  /**
   * Run each handler in a transaction that commits with the job's completion; see `ctx.tx`. false unless set. A store without transactions
   * (`capabilities.transactions`) rejects true with `NotSupported`.
   */
  transaction?: boolean
  /**
   * A streaming replica of the store's database: a URL, or a client as the store's `client` takes. A handler starts once the replica shows
   * everything that was committed before the job was pushed; see `ctx.replica`. Unset: no replica. A store without replicas
   * (`capabilities.replicas`) rejects it with `NotSupported`.
   */
  replica?: unknown
  /** How long a job waits for the replica; then its handler reads the primary. 0 to 24 days, 5 s unless set. Only with `replica`. */
  replicaTimeout?: Duration
}

const WORK_RULES: Rules<WorkOptions> = {
  concurrency: isInteger(1, 100_000),
  window: (value) => milliseconds(value, 'window', 0, LONGEST_TIMER) >= 0,
  lanes: (value) => (Array.isArray(value) && value.every(isLane)) || 'an array of lanes',
  transaction: isBoolean,
  // The store checks it.
  replica: () => true,
  replicaTimeout: (value) => milliseconds(value, 'replicaTimeout', 0, LONGEST_TIMER) >= 0,
}
const LANE_RULES: Rules<Lane> = { minPriority: isInteger(1, 9), reserve: isInteger(1, 100_000) }
const isLane = (value: unknown) =>
  checkOptions(value as Lane, LANE_RULES, 'a lane', ['minPriority', 'reserve']) !== null

/** @throws InvalidOption, NotSupported */
export function workSettings(queue: string, options: WorkOptions | undefined, store: Store, events: PondEmitter) {
  const given = checkOptions(options, WORK_RULES, `work on ${queue}`)
  const { concurrency = 10, transaction = false } = given
  if (transaction && store.transactions === undefined) throw lacking('transaction: true', 'transactions', store)
  return {
    concurrency,
    window: milliseconds(given.window ?? 50, 'window'),
    lanes: lanesOf(given, concurrency, store),
    transaction,
    replica: replicaOf(queue, given, store, events),
  }
}

function lanesOf({ lanes = [] }: WorkOptions, concurrency: number, store: Store): Lanes | undefined {
  if (lanes.length === 0) return undefined
  if (store.capabilities.limits !== true) throw lacking('lanes', 'limits', store)
  return new Lanes(lanes, concurrency)
}

function replicaOf(
  queue: string,
  { replica, replicaTimeout }: WorkOptions,
  store: Store,
  events: PondEmitter,
): Replica | undefined {
  if (replica === undefined) {
    if (replicaTimeout === undefined) return undefined
    throw new MillpondError('InvalidOption', `work on ${queue}: replicaTimeout goes with replica`)
  }
  if (store.replicas === undefined) throw lacking('replica', 'read replicas', store)
  const limit = milliseconds(replicaTimeout ?? '5s', 'replicaTimeout')
  return new Replica(store.replicas.open(replica), limit, (error) => events.trouble(error))
}

function lacking(option: string, what: string, { name }: Store): MillpondError {
  return new MillpondError('NotSupported', `${option} needs a store with ${what}; ${name} has none`)
}
