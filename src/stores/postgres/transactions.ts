/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction takes a connection of the pool with its first query, and gives it back at its end. Most of them may be
 * open at once, but not all: the store's own calls, on which the handlers may wait, need one.
 */
import { MillpondError } from '../../errors.ts'
import type { Completion, HoldOutcome, NewJob, PushOutcome, StoreTransaction, StoreTransactions } from '../../store.ts'
import { checkStatement } from '../statement.ts'
import type { Caller } from './caller.ts'
import { queryOf } from './callers.ts'
import type { Query, Row, Session } from './database.ts'
import { statementError, stateOf, toMillpondError } from './errors.ts'
import { integersOrNull, texts } from './records.ts'
import { jobsText, outcomeFrom, plainArray, resultsText } from './wire.ts'

/** Begin, commit and rollback are ours; savepoints, and rolling back to them, are the handler's. */
const CONTROL =
  /^(?:\s|;|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction)\b|rollback\b(?!\s+(?:work\s+|transaction\s+)?to\b))/i

/** Ms for which a queue is taken to be there: one that nobody uses is removed. And how many are remembered. */
const BELIEVED = 60_000
const MOST_QUEUES = 10_000

/** Told what a transaction did, once it has committed. */
export interface Committed {
  pushed(queues: ReadonlySet<string>): void
  completed(queue: string, id: string): void
}

/** So many may be taken at once; whoever comes later waits for his turn. */
class Places {
  #free: number
  readonly #line: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#line.push(resolve))
  }

  give(): void {
    const next = this.#line.shift()
    if (next === undefined) this.#free++
    else next()
  }
}

class HandlerTransaction implements StoreTransaction {
  readonly #caller: Caller
  readonly #places: Places
  readonly #committed: Committed
  readonly #pushed = new Set<string>()
  #session: Promise<Session> | undefined
  #ended = false

  constructor(caller: Caller, places: Places, committed: Committed) {
    this.#caller = caller
    this.#places = places
    this.#committed = committed
  }

  readonly query = async (text: string, params: readonly unknown[] = []): Promise<Row[]> => {
    checkStatement('ctx.tx', text, params)
    if (CONTROL.test(text)) {
      const message =
        'a handler does not begin or end its transaction itself: return to commit it, throw to roll it back'
      throw new MillpondError('InvalidOption', message)
    }
    const session = await this.#begun()
    try {
      return await session.query(text, params)
    } catch (error) {
      throw statementError(error)
    }
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const session = await this.#begun()
    const outcomes = await pushWith((text, params) => session.own(text, params), this.#caller, jobs)
    for (const { queue } of jobs) this.#pushed.add(queue)
    return outcomes
  }

  async complete(queue: string, completion: Completion): Promise<HoldOutcome> {
    if (this.#ended) throw ended()
    this.#ended = true
    const { schema } = this.#caller
    const params = [
      queue,
      plainArray([completion.id]),
      plainArray([completion.fence]),
      resultsText([completion]),
      this.#caller.now(),
    ]
    const call = 'complete($1::text, $2::text::uuid[], $3::text::integer[], $4::text, $5::bigint) as answer'
    if (this.#session === undefined) {
      const [row] = await this.#caller.rows(call, params)
      return this.#told(queue, completion.id, integersOrNull(row?.answer) === null)
    }
    return this.#finish(async (session) => {
      const [row] = await session.own(`select * from ${schema}.${call}`, params)
      const ok = integersOrNull(row?.answer) === null
      await session.own(ok ? 'commit' : 'rollback')
      return this.#told(queue, completion.id, ok)
    })
  }

  async rollback(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    if (this.#session !== undefined) await this.#finish((session) => session.own('rollback'))
  }

  #told(queue: string, id: string, ok: boolean): HoldOutcome {
    if (!ok) return 'stale'
    this.#committed.completed(queue, id)
    if (this.#pushed.size > 0) this.#committed.pushed(this.#pushed)
    return 'ok'
  }

  #begun(): Promise<Session> {
    this.#caller.assertOpen()
    if (this.#ended) throw ended()
    this.#session ??= this.#caller.track(this.#begin())
    return this.#session
  }

  async #begin(): Promise<Session> {
    await this.#places.take()
    let session: Session | undefined
    try {
      session = await this.#caller.database.reserve()
      await session.begin()
      return session
    } catch (error) {
      session?.release()
      this.#places.give()
      throw toMillpondError(error)
    }
  }

  async #finish<T>(last: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#session
    if (session === undefined) throw ended()
    try {
      return await this.#caller.track(last(session))
    } catch (error) {
      // Whatever state it is in, the connection must not go back with a transaction open.
      await session.own('rollback').catch(() => {})
      throw toMillpondError(error)
    } finally {
      session.release()
      this.#places.give()
    }
  }
}

function ended(): MillpondError {
  return new MillpondError(
    'TransactionMismatch',
    "the handler's transaction has ended: wait for its queries before returning",
  )
}

export class PostgresTransactions implements StoreTransactions {
  readonly #caller: Caller
  readonly #install: string
  readonly #places: Places
  readonly #committed: Committed
  /** Queues that were there a short while ago → until when that is believed, by `performance.now()`. */
  readonly #queues = new Map<string, number>()
  /** So that a `query` that is handed back to us is known for what it is. */
  readonly #byQuery = new WeakMap<object, HandlerTransaction>()

  /** @param most how many handlers may hold a transaction at once @param install see `migrate` */
  constructor(caller: Caller, most: number, install: string, committed: Committed) {
    this.#caller = caller
    this.#install = install
    this.#places = new Places(most)
    this.#committed = committed
  }

  begin(): StoreTransaction {
    const transaction = new HandlerTransaction(this.#caller, this.#places, this.#committed)
    this.#byQuery.set(transaction.query, transaction)
    return transaction
  }

  async push(tx: unknown, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#caller.assertOpen()
    const own = typeof tx === 'function' ? this.#byQuery.get(tx) : undefined
    if (own !== undefined) {
      for (const queue of new Set(jobs.map((job) => job.queue))) await this.#ensure(queue)
      return own.push(jobs)
    }
    const query = queryOf(tx)
    try {
      await this.#check(query)
      for (const queue of new Set(jobs.map((job) => job.queue))) await this.#ensure(queue)
      return await pushWith(query, this.#caller, jobs)
    } catch (error) {
      // The client's own error holds the statement's parameters, which are the jobs.
      throw toMillpondError(error)
    }
  }

  /** A queue comes into being by itself: inside the caller's transaction everybody else's first push to it would wait for its end. */
  async #ensure(queue: string): Promise<void> {
    const now = performance.now()
    if ((this.#queues.get(queue) ?? 0) > now) return
    await this.#caller.rows('make_queue($1::text)', [queue])
    if (this.#queues.size >= MOST_QUEUES) this.#queues.clear()
    this.#queues.set(queue, now + BELIEVED)
  }

  /** Provokes no error inside a transaction: postgres.js would let it fail at its end, whoever has dealt with the error. */
  async #check(query: Query): Promise<void> {
    const { schema } = this.#caller
    // A savepoint exists only inside a transaction.
    await query('savepoint millpond_check', []).catch((cause: unknown) => {
      throw mismatch('it is not an open transaction', cause)
    })
    await query('release savepoint millpond_check', [])
    const [found] = await query('select to_regprocedure($1::text) is not null as there', [`${schema}.installed()`])
    if (found?.there !== true) throw mismatch(`its database has no schema ${schema} of Millpond`, undefined)
    const [row] = await query(`select ${schema}.installed() ->> 'install' as install`, [])
    if (row?.install !== this.#install) throw mismatch('it is a transaction on another database', undefined)
  }
}

function mismatch(why: string, cause: unknown): MillpondError {
  const message = `tx takes an open transaction on the pond's own database; ${why}`
  return new MillpondError('TransactionMismatch', message, cause === undefined ? {} : { cause })
}

async function pushWith(query: Query, caller: Caller, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  const text = `select ${caller.schema}.push_jobs($1::text::json, false, $2::text::bigint) as answer`
  const now = caller.now()
  await query('savepoint millpond_push', [])
  try {
    const [row] = await query(text, [jobsText(jobs), now === null ? null : String(now)])
    await query('release savepoint millpond_push', [])
    return texts(row?.answer).map(outcomeFrom)
  } catch (error) {
    // Where the transaction itself is over there is nothing to go back to.
    if (stateOf(error) !== '') await query('rollback to savepoint millpond_push', []).catch(() => {})
    throw error
  }
}
