/**
 * Transactions of handlers, in the stores that have them. One begins with the first statement or push; one that is never used costs nothing:
 * its completion goes with the others.
 *
 *   unused ── query, push ──► open ── complete, rollback ──► ended
 *      └────────── complete, rollback ──────────────────────────┘
 */
import type {
  Completion,
  HoldOutcome,
  NewJob,
  PushOutcome,
  QueueSettings,
  StoreTransaction,
  StoreTransactions,
} from '../store.ts'
import { MillpondError } from '../values/errors.ts'
import { checkStatement } from './statement.ts'

type Row = Record<string, unknown>

/** A transaction that has begun, or begins with the first call. */
export interface OpenTransaction {
  query(text: string, params: readonly unknown[]): Promise<Row[]>
  push(jobs: readonly NewJob[], settings?: QueueSettings): Promise<PushOutcome[]>
  /** Completes the jobs and commits; if a claim is stale it rolls back. */
  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]>
  rollback(): Promise<void>
}

/** What differs from store to store. */
interface Transacting {
  assertOpen(): void
  begin(): OpenTransaction
  /** Without a transaction. */
  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]>
  /** In a transaction of the caller's own. */
  pushWith(tx: unknown, jobs: readonly NewJob[], settings?: QueueSettings): Promise<PushOutcome[]>
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
    async push(tx, jobs, settings) {
      store.assertOpen()
      const own = typeof tx === 'function' ? byQuery.get(tx) : undefined
      return own === undefined ? store.pushWith(tx, jobs, settings) : own.push(jobs, settings)
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

  async push(jobs: readonly NewJob[], settings?: QueueSettings): Promise<PushOutcome[]> {
    return this.#open().push(jobs, settings)
  }

  async complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    // Outside a transaction, completions beside a stale one would take effect.
    if (completions.length > 1) this.#open()
    this.#assertGoing()
    this.#ended = true
    return (this.#begun ?? this.#store).complete(queue, completions)
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
