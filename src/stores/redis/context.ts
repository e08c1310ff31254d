/** What the operations of one store share. */
import type { ClaimedJob } from '../../values/jobs/records.ts'
import type { QueueSettings } from '../../values/settings/settings.ts'
import type { Calls } from './connection/calls.ts'
import type { EvictionWatch } from './connection/server.ts'
import type { Notifier } from './notifier.ts'

export interface StoreContext {
  readonly calls: Calls
  /** For what replicas must have before it is answered: a connection of its own, since the server answers nothing else on it meanwhile. */
  readonly safeCalls: Calls
  readonly notifier: Notifier
  /** Milliseconds until a call without an answer is rejected. */
  readonly timeout: number
  /** The time of a test; null: the server's own. */
  readonly now: () => number | null
  /** Settings that were made here, by queue, for a server that has lost them. */
  readonly settings: Map<string, QueueSettings>
  /** By queue and worker: `claim` settles them. */
  readonly doubtfulClaims: Map<string, DoubtfulClaim>
  /** Claims whose ending got no answer: it may have taken effect, and will be sent again. */
  readonly doubtfulEndings: WeakSet<ClaimedJob>
  /** For messages. */
  readonly where: string
  readonly evictionWatch: EvictionWatch
  /** The server's time minus `performance.now()`, at least; null: not known, or the time is a test's. */
  serverAhead: number | null
}

/** A claim whose answer is lost. */
export interface DoubtfulClaim {
  queue: string
  worker: string
  /** Identifies the call among all calls of the worker. */
  call: string
}
