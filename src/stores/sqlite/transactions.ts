/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction lives on the thread's connection, begins with its first query, and shuts out every other writer
 * until it ends. One that is never used costs nothing: its completion goes with the others.
 */

import type { Completion, HoldOutcome, NewJob, PushOutcome, StoreTransaction, StoreTransactions } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import { checkStatement } from '../statement.ts'
import { pushWithCaller } from './connection/caller-transaction.ts'
import type { ThreadClient } from './connection/client.ts'
import type { Row, Value } from './connection/values.ts'
import { copiesOf, packJobs, pushOutcomes } from './wire.ts'

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
  readonly #client: ThreadClient
  readonly #number: number
  #state: 'unused' | 'used' | 'ended' = 'unused'

  constructor(client: ThreadClient, number: number) {
    this.#client = client
    this.#number = number
  }

  readonly query = async (text: string, params: readonly unknown[] = []): Promise<Row[]> => {
    checkStatement('ctx.tx', text, params)
    return this.#client.call('query', { text, params: checkParams(params) }, this.#numberFor('used'))
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    return pushOutcomes(jobs, await this.#client.call('push', packJobs(jobs), this.#numberFor('used')))
  }

  async complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    // Outside a transaction, completions beside a stale one would take effect.
    if (completions.length > 1 && this.#state === 'unused') await this.query('select 1')
    const number = this.#state === 'unused' ? undefined : this.#number
    this.#numberFor('ended')
    return this.#client.call('complete', { queue, completions: copiesOf(completions) }, number)
  }

  async rollback(): Promise<void> {
    const used = this.#state === 'used'
    this.#state = 'ended'
    if (used) await this.#client.call('rollback', null, this.#number)
  }

  #numberFor(next: 'used' | 'ended'): number {
    if (next === 'used') this.#client.assertOpen()
    if (this.#state === 'ended') {
      const message = "the handler's transaction has ended: wait for its queries before returning"
      throw new MillpondError('TransactionMismatch', message)
    }
    this.#state = next
    return this.#number
  }
}

export function transactionsOf(client: ThreadClient): StoreTransactions {
  // So that a `query` that is handed back to us is known for what it is.
  const byQuery = new WeakMap<object, HandlerTransaction>()
  let count = 0
  return {
    begin() {
      const transaction = new HandlerTransaction(client, ++count)
      byQuery.set(transaction.query, transaction)
      return transaction
    },
    async push(tx, jobs) {
      client.assertOpen()
      const own = typeof tx === 'function' ? byQuery.get(tx) : undefined
      if (own !== undefined) return own.push(jobs)
      return pushOutcomes(jobs, pushWithCaller(tx, client.path, packJobs(jobs), client.now()))
    },
  }
}
