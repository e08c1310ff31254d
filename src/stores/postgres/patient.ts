/** A server as its doctor sees it. */
import type { Cells, Database } from './connection/database.ts'

export interface Patient {
  schema: string
  database: Database
  /** @returns the rows, as texts */
  ask(sql: string): Promise<readonly Cells[]>
}
