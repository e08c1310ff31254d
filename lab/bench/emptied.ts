import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'

/** Resolves when the query finds nothing: handled is not yet acknowledged, and the database must have every completion. */
export async function emptied(pool: pg.Pool, query: string): Promise<void> {
  while ((await pool.query(query)).rowCount !== 0) await sleep(1)
}
