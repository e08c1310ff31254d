/** What the parts of a Redis store share. */
import type { Bells } from '../bells.ts'
import type { IdleQueues } from '../idle.ts'
import type { Doorbell } from './doorbell.ts'
import type { Link } from './link.ts'
import type { Queues } from './queues.ts'
import type { ServerRun } from './run.ts'

export interface Shared {
  link: Link
  queues: Queues
  doorbell: Doorbell
  /** Rung in this process, at once. */
  bells: Bells
  run: ServerRun
  idle: IdleQueues
  /** The time of a test; null: the server's own. */
  now: () => number | null
}
