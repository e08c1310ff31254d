import type { Millpond } from '../../pond/millpond.ts'
import type { Store } from '../../store.ts'
import type { OnError } from '../../web/problem.ts'
import type { Sweeper } from '../../worker/sweeper.ts'
import type { Claims } from '../claims.ts'
import type { Limits } from '../limits.ts'
import type { QueueLimit } from '../queue-limit.ts'

/** What the handlers of routes work with. */
export interface RouteContext {
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
