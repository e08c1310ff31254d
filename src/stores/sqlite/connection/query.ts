/** A statement of a handler's own, inside its transaction. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { MillpondError } from '../../../errors.ts'
import type { Row, Value } from './values.ts'

/** A handler has few texts; one that builds texts from values has endless ones. */
const MAX_PREPARED = 200

export class HandlerQueries {
  readonly #db: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  run(text: string, params: readonly Value[]): Row[] {
    return this.#prepare(text).all(...params)
  }

  #prepare(text: string): StatementSync {
    const known = this.#prepared.get(text)
    if (known !== undefined) return known
    const statement = this.#db.prepare(text)
    // SQLite compiles the first statement and says nothing of the others: they would be dropped silently.
    const rest = text.slice(statement.sourceSQL.length).replace(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]/g, '')
    if (rest !== '')
      throw new MillpondError('InvalidOption', 'a query holds one statement: send the others by themselves')
    if (this.#prepared.size >= MAX_PREPARED) this.#prepared.clear()
    this.#prepared.set(text, statement)
    return statement
  }
}
