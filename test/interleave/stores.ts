/** The stores that the explorer knows. */

import { missingReason, serverUrl } from '../servers/shared.ts'
import type { Arena } from './arena.ts'
import { PostgresArena } from './postgres/arena.ts'
import { memory, redis, sqlite } from './whole/stores.ts'

export interface Place {
  /** Why it cannot be opened here. */
  missing: string | false
  open(): Promise<Arena>
}

export const ARENAS: Record<string, Place> = {
  postgres: { missing: missingReason('postgres'), open: () => PostgresArena.open(serverUrl('postgres') ?? '') },
  sqlite: { missing: false, open: sqlite },
  redis: { missing: missingReason('redis'), open: () => redis(serverUrl('redis') ?? '') },
  memory: { missing: false, open: memory },
}
