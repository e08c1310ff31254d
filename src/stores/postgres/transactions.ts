/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction takes a connection of the pool with its first query, and gives it back at its end. Most of them may be
 * open at once, but not all: the store's own calls, on which the handlers may wait, need one.
 */

import type { Completion, HoldOutcome, NewJob, PushOutcome, StoreTransaction, StoreTransactions } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import { checkStatement } from '../statement.ts'
import { queryOf } from './connection/caller-transaction.ts'
import type { Calls } from './connection/calls.ts'
import type { Query, Row, Session } from './connection/database.ts'
import { inlined } from './connection/inline.ts'
import type { Context } from './context.ts'
import { statementError, stateOf, toMillpondError } from './errors.ts'
import { COMPLETE, completeValues } from './operations/end.ts'
import { holdOutcomes, jobsText, outcomeFrom, texts } from './wire.ts'

/** Ms for which a queue is taken to be there: one that nobody uses is removed. And how many are remembered. */
const BELIEVED = 60_000
const MAX_QUEUES = 10_000

/** So many may be taken at once; whoever comes later waits for his turn. */
class Places {
  #free: number
  readonly #waiters: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }

  give(): void {
    const next = this.#waiters.shift()
    if (next === undefined) this.#free++
    else next()
  }
}

class HandlerTransaction implements StoreTransaction {
  readonly #context: Context
  readonly #places: Places
  readonly #pushed = new Set<string>()
  #session: Promise<Session> | undefined
  #ended = false

  constructor(context: Context, places: Places) {
    this.#context = context
    this.#places = places
  }

  get #calls(): Calls {
    return this.#context.calls
  }

  readonly query = async (text: string, params: readonly unknown[] = []): Promise<Row[]> => {
    checkStatement('ctx.tx', text, params)
    const session = await this.#begun()
    try {
      return await session.query(text, params)
    } catch (error) {
      throw statementError(error)
    }
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const session = await this.#begun()
    const outcomes = await pushWith((text, params) => session.run(inlined(text, params)), this.#calls, jobs)
    for (const { queue } of jobs) this.#pushed.add(queue)
    return outcomes
  }

  async complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    // Outside a transaction, completions beside a stale one would take effect.
    if (completions.length > 1) await this.#begun()
    if (this.#ended) throw ended()
    this.#ended = true
    const { notifier } = this.#context
    const values = completeValues(queue, completions, this.#calls.now())
    const answer =
      this.#session === undefined
        ? await this.#calls.answer(COMPLETE, values)
        : await this.#finish(async (session) => {
            const [row] = await session.run(this.#calls.inside(COMPLETE, values))
            await (row?.answer === null ? session.commit() : session.rollback())
            return row?.answer
          })
    const outcomes = holdOutcomes(completions, answer)
    if (outcomes.includes('stale')) return outcomes
    for (const { id } of completions) notifier.bells.ring('finished', queue, id)
    for (const each of this.#pushed) notifier.bells.ring('work', each)
    return outcomes
  }

  async rollback(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    if (this.#session !== undefined) await this.#finish((session) => session.rollback())
  }

  #begun(): Promise<Session> {
    this.#calls.assertOpen()
    if (this.#ended) throw ended()
    this.#session ??= this.#calls.track(this.#begin())
    return this.#session
  }

  async #begin(): Promise<Session> {
    await this.#places.take()
    try {
      return await this.#calls.database.begin('isolation level read committed')
    } catch (error) {
      this.#places.give()
      throw toMillpondError(error)
    }
  }

  async #finish<T>(last: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#session
    if (session === undefined) throw ended()
    try {
      return await this.#calls.track(last(session))
    } catch (error) {
      // Whatever state it is in, the connection must not go back with a transaction open.
      await session.rollback().catch(() => {})
      throw toMillpondError(error)
    } finally {
      this.#places.give()
    }
  }
}

const ended = () => mismatch("the handler's transaction has ended: wait for its queries before returning")

const mismatch = (message: string, cause?: unknown): MillpondError =>
  new MillpondError('TransactionMismatch', message, cause === undefined ? {} : { cause })

export class PostgresTransactions implements StoreTransactions {
  readonly #context: Context
  readonly #calls: Calls
  readonly #install: string
  readonly #places: Places
  /** Queues that were there a short while ago → until when that is believed, by `performance.now()`. */
  readonly #queues = new Map<string, number>()
  /** So that a `query` that is handed back to us is known for what it is. */
  readonly #byQuery = new WeakMap<object, HandlerTransaction>()

  /** @param most how many handlers may hold a transaction at once @param install see `migrate` */
  constructor(context: Context, most: number, install: string) {
    this.#context = context
    this.#calls = context.calls
    this.#install = install
    this.#places = new Places(most)
  }

  begin(): StoreTransaction {
    const transaction = new HandlerTransaction(this.#context, this.#places)
    this.#byQuery.set(transaction.query, transaction)
    return transaction
  }

  async push(tx: unknown, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#calls.assertOpen()
    const own = typeof tx === 'function' ? this.#byQuery.get(tx) : undefined
    if (own !== undefined) {
      for (const queue of new Set(jobs.map((job) => job.queue))) await this.#ensure(queue)
      return own.push(jobs)
    }
    const query = queryOf(tx)
    try {
      await this.#check(query)
      for (const queue of new Set(jobs.map((job) => job.queue))) await this.#ensure(queue)
      return await pushWith(query, this.#calls, jobs)
    } catch (error) {
      // The client's own error holds the statement's parameters, which are the jobs.
      throw toMillpondError(error)
    }
  }

  /** A queue comes into being by itself: inside the caller's transaction everybody else's first push to it would wait for its end. */
  async #ensure(queue: string): Promise<void> {
    const now = performance.now()
    if ((this.#queues.get(queue) ?? 0) > now) return
    await this.#calls.answer('make_queue($1)', [queue])
    if (this.#queues.size >= MAX_QUEUES) this.#queues.clear()
    this.#queues.set(queue, now + BELIEVED)
  }

  /** Provokes no error inside a transaction: postgres.js would let it fail at its end, whoever has dealt with the error. */
  async #check(query: Query): Promise<void> {
    const { schema } = this.#calls
    const not = (why: string, cause?: unknown) =>
      mismatch(`tx takes an open transaction on the pond's own database; ${why}`, cause)
    // A savepoint exists only inside a transaction.
    await query('savepoint millpond_check', []).catch((cause: unknown) => {
      throw not('it is not an open transaction', cause)
    })
    await query('release savepoint millpond_check', [])
    const [found] = await query('select to_regprocedure($1::text) is not null as there', [`${schema}.installed()`])
    if (found?.there !== true) throw not(`its database has no schema ${schema} of Millpond`)
    const [row] = await query(`select ${schema}.installed() ->> 'install' as install`, [])
    if (row?.install !== this.#install) throw not('it is a transaction on another database')
  }
}

async function pushWith(query: Query, calls: Calls, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  const text = `select ${calls.schema}.push_jobs($1::text::json, false, $2::text::bigint) as answer`
  const now = calls.now()
  await query('savepoint millpond_push', [])
  try {
    const [row] = await query(text, [jobsText(jobs), now === null ? null : String(now)])
    await query('release savepoint millpond_push', [])
    return texts(row?.answer).map(outcomeFrom)
  } catch (error) {
    // Where the transaction itself is over there is nothing to go back to.
    if (stateOf(error) !== '') await query('rollback to savepoint millpond_push', []).catch(() => {})
    throw toMillpondError(error)
  }
}
