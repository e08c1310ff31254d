/** A statement of a handler's own, inside its transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { MillpondError } from '../../../values/errors.ts'
import type { Row, Value } from './values.ts'

export function query(db: DatabaseSync, text: string, params: readonly Value[]): Row[] {
  const statement = db.prepare(text)
  // SQLite compiles the first statement and says nothing of the others: they would be dropped silently.
  const rest = text.slice(statement.sourceSQL.length).replace(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]/g, '')
  if (rest !== '')
    throw new MillpondError('InvalidOption', 'a query holds one statement: send the others by themselves')
  return statement.all(...params)
}
