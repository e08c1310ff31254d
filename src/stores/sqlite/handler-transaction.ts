/**
 * A handler's open transaction on the thread's connection. It holds up every writer, extensions of other jobs' leases among
 * them, so its time is bounded as a whole, however busy it is.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { MillpondError } from '../../errors.ts'
import type { HoldOutcome } from '../../store.ts'
import type { Engine } from './engine.ts'
import type { NotPushed, RequestOf } from './protocol.ts'
import type { Row, Value } from './values.ts'

/** Prepared statements of handlers, per connection. A handler has few texts; whoever builds texts from values has endless ones. */
const MOST_STATEMENTS = 200
const prepared = new WeakMap<DatabaseSync, Map<string, StatementSync>>()

function prepare(db: DatabaseSync, text: string): StatementSync {
  const known = prepared.get(db) ?? new Map<string, StatementSync>()
  prepared.set(db, known)
  let statement = known.get(text)
  if (statement === undefined) {
    statement = db.prepare(text)
    // SQLite compiles the first statement and says nothing of the others: they would be dropped silently.
    const rest = text.slice(statement.sourceSQL.length).replace(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]/g, '')
    if (rest !== '')
      throw new MillpondError('InvalidOption', 'a query holds one statement: send the others by themselves')
    if (known.size >= MOST_STATEMENTS) known.clear()
    known.set(text, statement)
  }
  return statement
}

export class HandlerTransaction {
  readonly number: number
  readonly #db: DatabaseSync
  readonly #engine: Engine
  readonly #timer: NodeJS.Timeout

  constructor(number: number, db: DatabaseSync, engine: Engine, timeout: number, onLate: () => void) {
    this.number = number
    this.#db = db
    this.#engine = engine
    this.#timer = setTimeout(onLate, timeout)
  }

  query(text: string, params: readonly Value[]): Row[] {
    return prepare(this.#db, text).all(...params)
  }

  push(flat: readonly Value[], now: number): NotPushed {
    return this.#engine.pushWithin(flat, now)
  }

  complete({ input, now }: RequestOf<'commitWith'>): HoldOutcome {
    return this.#engine.completeOne(input.queue, input.completion, now ?? Date.now())
  }

  stopTimer(): void {
    clearTimeout(this.#timer)
  }
}
