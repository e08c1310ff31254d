import type { Millpond } from '../../pond/millpond.ts'
import type { Store } from '../../store.ts'
import type { OnError } from '../../web/report.ts'
import type { Sweeper } from '../../worker/sweeper.ts'
import type { Claims } from '../claims.ts'
import type { Limits } from '../limits.ts'
import type { QueueLimit } from '../queue-limit.ts'
import { string } from '../schema.ts'

/** What handlers work with. */
export interface Parts {
  store: Store
  pond: Millpond
  sweeper: Sweeper
  claims: Claims
  limits: Limits
  queueLimit: QueueLimit
  onError: OnError
  /** Aborted when the service stops. */
  stopping: AbortSignal
}

export const PREFER = string({
  description: '`wait=SECONDS`: how long to wait at the most (RFC 7240).',
  examples: ['wait=20'],
})

export const REQUESTED_WITH = string({
  description:
    'Of any value. Where there is no body, a request needs this, `Prefer`, or the Content-Type of a body: forms of web pages can send none of them.',
  examples: ['curl'],
})
