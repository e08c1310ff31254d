/**
 * Transactions of handlers, in the stores that have them. One begins with the first statement or push; one that is
 * never used costs nothing: its completion goes with the others.
 *
 *   unused ── query, push ──► open ── complete, rollback ──► ended
 *      └────────── complete, rollback ──────────────────────────┘
 */

import type { OfQueue, PushInTransaction, StoreTransaction, StoreTransactions } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Completion, HoldOutcome, JournalItem, JournalOutcome, PushOutcome } from '../values/jobs/records.ts'
import { checkStatement } from './statement.ts'

type Row = Record<string, unknown>

/** A transaction that has begun, or begins with the first call. */
export interface OpenTransaction {
  query(text: string, params: readonly unknown[]): Promise<Row[]>
  push(input: Omit<PushInTransaction, 'tx'>): Promise<PushOutcome[]>
  /** Completes the jobs and commits; if a claim is stale it rolls back. */
  complete(input: OfQueue<Completion>): Promise<HoldOutcome[]>
  /** Adds the entries and commits; if any of them is refused it rolls back. */
  journal(input: OfQueue<JournalItem>): Promise<JournalOutcome[]>
  rollback(): Promise<void>
}

/** What differs from store to store. */
interface Transacting {
  assertOpen(): void
  begin(): OpenTransaction
  /** Without a transaction. */
  complete(input: OfQueue<Completion>): Promise<HoldOutcome[]>
  /** In a transaction of the caller's own. */
  pushWith(input: PushInTransaction): Promise<PushOutcome[]>
  /** See `StoreTransactions`. */
  takesSettings: boolean
}

export function transactionsBy(store: Transacting): StoreTransactions {
  // So that a `query` that is handed back to us is known for what it is.
  const byQuery = new WeakMap<object, HandlerTransaction>()
  return {
    takesSettings: store.takesSettings,
    begin() {
      const transaction = new HandlerTransaction(store)
      byQuery.set(transaction.query, transaction)
      return transaction
    },
    async push(input) {
      const { tx } = input
      store.assertOpen()
      const own = typeof tx === 'function' ? byQuery.get(tx) : undefined
      return own === undefined ? store.pushWith(input) : own.push(input)
    },
  }
}

export const mismatch = (message: string, cause?: unknown): MillpondError =>
  new MillpondError('TransactionMismatch', message, cause === undefined ? {} : { cause })

class HandlerTransaction implements StoreTransaction {
  readonly #store: Transacting
  #begun: OpenTransaction | undefined
  #ended = false

  constructor(store: Transacting) {
    this.#store = store
  }

  readonly query = async (text: string, params: readonly unknown[] = []): Promise<Row[]> => {
    checkStatement('ctx.tx', text, params)
    return this.#open().query(text, params)
  }

  async push(input: Omit<PushInTransaction, 'tx'>): Promise<PushOutcome[]> {
    return this.#open().push(input)
  }

  async complete(input: OfQueue<Completion>): Promise<HoldOutcome[]> {
    // Outside a transaction, completions beside a stale one would take effect.
    if (input.items.length > 1) this.#open()
    this.#assertGoing()
    this.#ended = true
    return (this.#begun ?? this.#store).complete(input)
  }

  async journal(input: OfQueue<JournalItem>): Promise<JournalOutcome[]> {
    const begun = this.#open()
    this.#ended = true
    return begun.journal(input)
  }

  async rollback(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    await this.#begun?.rollback()
  }

  #open(): OpenTransaction {
    this.#store.assertOpen()
    this.#assertGoing()
    this.#begun ??= this.#store.begin()
    return this.#begun
  }

  #assertGoing(): void {
    if (this.#ended) throw mismatch("the handler's transaction has ended: wait for its queries before returning")
  }
}
