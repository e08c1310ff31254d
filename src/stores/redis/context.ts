/** What the operations of one store share. */
import type { ClaimedJob } from '../../values/jobs/records.ts'
import type { QueueSettings } from '../../values/settings/settings.ts'
import type { Calls } from './connection/calls.ts'
import type { EvictionWatch } from './connection/server.ts'
import type { Found } from './found.ts'
import type { Notifier } from './notifier.ts'
import type { Locations, Partition } from './partition.ts'
import type { Patience } from './patience.ts'
import type { Queues } from './queues.ts'

export interface StoreContext {
  readonly calls: Calls
  /**
   * For what is to be on replicas before it is answered: a connection of its own, since the server answers nothing else on it meanwhile.
   */
  readonly safeCalls: Calls
  readonly queues: Queues
  readonly notifier: Notifier
  readonly prefix: string
  /** Settles what a script of the partition has told about links, as far as that can be done now. */
  readonly settle: (partition: Partition, told: readonly (readonly unknown[])[]) => Promise<unknown>
  /** Milliseconds until a call without an answer is rejected. */
  readonly timeout: number
  /** The time of a test; null: the server's own. */
  readonly now: () => number | null
  /** Settings that were made here, by queue, for a server that has lost them. */
  readonly settings: Map<string, QueueSettings>
  readonly locations: Locations
  /** By partition and worker: `claim` settles them. */
  readonly doubtfulClaims: Map<string, DoubtfulClaim>
  /** Where claims came from, of queues with several partitions. A queue may be split anew while they are held. */
  readonly claimedFrom: WeakMap<ClaimedJob, Partition>
  readonly patience: Patience
  /** For messages. */
  readonly where: string
  readonly evictionWatch: EvictionWatch
  readonly found: Found
  /** Buckets that have not answered a sweep yet. */
  readonly silentBuckets: Set<number>
  /** How many queues there are, as last counted. */
  queueCount: number
  /** How many links there are whose parents the store does not know, as last counted. */
  awaitedCount: number
  /** Of these, the last one that a sweep has looked at; empty: none. */
  awaitedFrom: Buffer
  /** Of these, those without a child, and since when sweeps have found it missing. */
  readonly childless: Map<string, number>
  /** Claims whose ending got no answer: it may have taken effect, and will be sent again. */
  readonly doubtfulEndings: WeakSet<ClaimedJob>
  /** Grows with each claim and sweep, so that each begins with the next partition or bucket. */
  rounds: number
}

/** A claim whose answer is lost. */
export interface DoubtfulClaim {
  partition: Partition
  worker: string
  /** Identifies the call among all calls of the worker. */
  call: string
}
