/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction has a connection of the pool until its end. Most of them may be open at once, but not all: the store's own calls,
 * on which the handlers may wait, need one.
 */

import type { NewJob, PushOutcome, StoreTransactions } from '../../store.ts'
import { mismatch, type OpenTransaction, transactionsBy } from '../transactions.ts'
import { queryOf } from './connection/caller-transaction.ts'
import type { Query, Session } from './connection/database.ts'
import { inlined } from './connection/script.ts'
import type { Context } from './context.ts'
import { isAway, statementError, stateOf, toMillpondError } from './errors.ts'
import { COMPLETE, complete, completeValues } from './operations/end.ts'
import { holdOutcomes, jobsText, outcomeFrom } from './wire.ts'

/** @param most how many handlers may hold a transaction at once @param install see `migrate` */
export function transactionsOf(context: Context, most: number, install: string): StoreTransactions {
  const { calls, notifier } = context
  const { schema } = calls
  const places = new Places(most)

  async function open(): Promise<Session> {
    await places.take()
    return calls.database.begin('isolation level read committed').catch((error: unknown) => {
      places.give()
      throw toMillpondError(error)
    })
  }

  function begin(): OpenTransaction {
    const opened = calls.track(open())
    const pushed = new Set<string>()

    async function ended<T>(last: (session: Session) => Promise<T>): Promise<T> {
      const session = await opened
      try {
        return await last(session)
      } catch (error) {
        // Whatever state it is in, the connection must not go back with a transaction open.
        await session.end('rollback').catch(() => {})
        throw toMillpondError(error)
      } finally {
        places.give()
      }
    }

    return {
      async query(text, params) {
        const session = await opened
        return session.query(text, params).catch((error: unknown) => {
          throw statementError(error)
        })
      },
      async push(jobs) {
        const session = await opened
        const query: Query = (text, params) => session.run(inlined(text, params))
        await makeQueues(jobs)
        const outcomes = await behindSavepoint(query, () => pushIn(query, jobs))
        for (const { queue } of jobs) pushed.add(queue)
        return outcomes
      },
      async complete(queue, completions) {
        const script = calls.inside(COMPLETE, completeValues(queue, completions, calls.now()))
        const last = ended(async (session) => {
          const [row] = await session.run(script)
          await session.end(row?.answer === null ? 'commit' : 'rollback')
          return row?.answer as number[] | null
        })
        const held = await calls.track(last)
        if (held === null) {
          for (const { id } of completions) notifier.bells.ring('finished', queue, id)
          for (const each of pushed) notifier.bells.ring('work', each)
        }
        return holdOutcomes(completions, held)
      },
      rollback: () => calls.track(ended((session) => session.end('rollback'))),
    }
  }

  /** A queue comes into being by itself: inside the caller's transaction everybody else's first push to it would wait for its end. */
  async function makeQueues(jobs: readonly NewJob[]): Promise<void> {
    for (const queue of new Set(jobs.map((job) => job.queue))) await calls.answer('make_queue($1)', [queue])
  }

  async function pushIn(query: Query, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const text = `select ${schema}.push_jobs($1::text::json, false, $2::text::bigint) as answer`
    const now = calls.now()
    const [row] = await query(text, [jobsText(jobs), now === null ? null : String(now)])
    return ((row?.answer ?? []) as string[]).map(outcomeFrom)
  }

  /** Provokes no error inside a transaction: postgres.js would let it fail at its end, whoever has dealt with the error. */
  async function check(query: Query): Promise<void> {
    const [found] = await query('select to_regprocedure($1::text) is not null as there', [`${schema}.installed()`])
    if (found?.there !== true) throw not(`its database has no schema ${schema} of Millpond`)
    const [row] = await query(`select ${schema}.installed() ->> 'install' as install`, [])
    if (row?.install !== install) throw not('it is a transaction on another database')
  }

  return transactionsBy({
    assertOpen: () => calls.assertOpen(),
    begin,
    complete: calls.operation((queue, completions) => complete(context, queue, completions)),
    async pushWith(tx, jobs) {
      const query = queryOf(tx)
      return behindSavepoint(query, async () => {
        await check(query)
        await makeQueues(jobs)
        return pushIn(query, jobs)
      })
    },
  })
}

const not = (why: string, cause?: unknown) =>
  mismatch(`tx takes an open transaction on the pond's own database; ${why}`, cause)

/** The transaction goes on where the work fails. @throws TransactionMismatch: a savepoint exists only inside a transaction */
async function behindSavepoint<T>(query: Query, work: () => Promise<T>): Promise<T> {
  await query('savepoint millpond_push', []).catch((cause: unknown) => {
    throw isAway(cause) ? toMillpondError(cause) : not('it is not an open transaction', cause)
  })
  try {
    const done = await work()
    await query('release savepoint millpond_push', [])
    return done
  } catch (error) {
    // Where the transaction itself is over there is nothing to go back to.
    if (stateOf(error) !== '') await query('rollback to savepoint millpond_push', []).catch(() => {})
    // The client's own error holds the statement's parameters, which are the jobs.
    throw toMillpondError(error)
  }
}

/** So many may be taken at once; whoever comes later waits for his turn. */
class Places {
  /** Below 0: how many wait. */
  #free: number
  readonly #waiters: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async take(): Promise<void> {
    if (this.#free-- <= 0) await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }

  give(): void {
    this.#free++
    this.#waiters.shift()?.()
  }
}
