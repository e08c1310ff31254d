/** A handler's read: in a transaction that can write nothing, even where a standby has just been promoted. */
import type { Database, Row } from './database.ts'

export async function readOnly(database: Database, text: string, params: readonly unknown[]): Promise<Row[]> {
  const session = await database.begin('isolation level read committed read only')
  try {
    return await session.query(text, params)
  } finally {
    await session.rollback().catch(() => {})
  }
}
