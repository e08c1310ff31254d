import type { Millpond } from '../../millpond.ts'
import type { Store } from '../../store.ts'
import type { OnError } from '../../web/report.ts'
import type { Claims } from '../claims.ts'
import type { Limits } from '../limits.ts'
import type { QueueLimit } from '../queue-limit.ts'
import type { Parameter } from '../route.ts'
import type { Sweeper } from '../sweeper.ts'

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

export const PREFER: Parameter = {
  description: '`wait=SECONDS`: how long to wait at the most (RFC 7240).',
  schema: { type: 'string', examples: ['wait=20'] },
}

export const REQUESTED_WITH: Parameter = {
  description:
    'Of any value. Where there is no body, a request needs this, `Prefer`, or the Content-Type of a body: forms of web pages can send none of them.',
  schema: { type: 'string', examples: ['curl'] },
}
