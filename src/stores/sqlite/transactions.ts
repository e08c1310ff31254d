/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction lives on the thread's connection, begins with its first query, and shuts out every other writer
 * until it ends. One that is never used costs nothing: its completion goes with the others.
 */
import { MillpondError } from '../../errors.ts'
import type { Completion, HoldOutcome, NewJob, PushOutcome, StoreTransaction, StoreTransactions } from '../../store.ts'
import { checkStatement } from '../statement.ts'
import { pushWithCaller } from './caller.ts'
import { copied, flattenJobs } from './flat.ts'
import type { Link } from './link.ts'
import { pushOutcomes } from './outcomes.ts'
import type { Row, Value } from './values.ts'

/** Begin, commit and rollback are ours; savepoints, and rolling back to them, are the handler's. */
const CONTROL =
  /^(?:\s|;|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:(?:begin|commit|end)\b|rollback\b(?!\s+(?:transaction\s+)?to\b))/i

function checkText(text: string): void {
  if (CONTROL.test(text)) {
    const message = 'a handler does not begin or end its transaction itself: return to commit it, throw to roll it back'
    throw new MillpondError('InvalidOption', message)
  }
}

function checkParams(params: readonly unknown[]): Value[] {
  return params.map((value, index) => {
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
      return value
    if (value instanceof Uint8Array) return new Uint8Array(value)
    const what = value instanceof Date ? 'a Date' : typeof value === 'object' ? 'an object' : typeof value
    const message = `parameter ${index + 1} is ${what}: SQLite takes null, numbers, bigints, strings and Uint8Array`
    throw new MillpondError('InvalidOption', message)
  })
}

class HandlerTransaction implements StoreTransaction {
  readonly #link: Link
  readonly #number: number
  #state: 'unused' | 'begun' | 'ended' = 'unused'

  constructor(link: Link, number: number) {
    this.#link = link
    this.#number = number
  }

  readonly query = async (text: string, params: readonly unknown[] = []): Promise<Row[]> => {
    checkStatement('ctx.tx', text, params)
    checkText(text)
    const values = checkParams(params)
    this.#begin()
    return this.#link.call('query', { transaction: this.#number, text, params: values })
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#begin()
    const exceptions = await this.#link.call('pushWithin', { transaction: this.#number, flat: flattenJobs(jobs) })
    return pushOutcomes(jobs, exceptions)
  }

  #begin(): void {
    this.#link.assertOpen()
    if (this.#state === 'ended') {
      throw new MillpondError(
        'TransactionMismatch',
        "the handler's transaction has ended: wait for its queries before returning",
      )
    }
    this.#state = 'begun'
  }

  async complete(queue: string, completion: Completion): Promise<HoldOutcome> {
    const used = this.#state === 'begun'
    const { id, fence, result } = completion
    const sent = { id, fence, result: copied(result) }
    if (this.#state === 'ended')
      throw new MillpondError('TransactionMismatch', "the handler's transaction has ended already")
    this.#state = 'ended'
    if (used) return this.#link.call('commitWith', { transaction: this.#number, queue, completion: sent })
    const packed = [id, fence, sent.result?.encoding ?? null, sent.result?.body ?? null]
    const stale = await this.#link.call('complete', { queue, packed })
    return stale?.length === 0 ? 'ok' : 'stale'
  }

  async rollback(): Promise<void> {
    const used = this.#state === 'begun'
    this.#state = 'ended'
    if (used) await this.#link.call('rollback', { transaction: this.#number })
  }
}

export class SqliteTransactions implements StoreTransactions {
  readonly #link: Link
  /** So that a `query` that is handed back to us is known for what it is. */
  readonly #byQuery = new WeakMap<object, HandlerTransaction>()
  #count = 0

  constructor(link: Link) {
    this.#link = link
  }

  begin(): StoreTransaction {
    const transaction = new HandlerTransaction(this.#link, ++this.#count)
    this.#byQuery.set(transaction.query, transaction)
    return transaction
  }

  async push(tx: unknown, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#link.assertOpen()
    const own = this.#ownOf(tx)
    if (own !== undefined) return own.push(jobs)
    return pushOutcomes(jobs, pushWithCaller(tx, this.#link.path, flattenJobs(jobs), this.#link.now()))
  }

  #ownOf(tx: unknown): HandlerTransaction | undefined {
    return typeof tx === 'function' ? this.#byQuery.get(tx) : undefined
  }
}
