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
import { isAway, statementError, stateOf, toMillpondError } from './errors.ts'
import type { Context } from './notifier.ts'
import { COMPLETE, complete, completeValues } from './operations/end.ts'
import { holdOutcomes, jobsText, outcomeFrom } from './wire.ts'

/** @param most how many handlers may hold a transaction at once @param install see `migrate` */
export function transactionsOf(context: Context, most: number, install: string): StoreTransactions {
  const { calls, notifier } = context
  const { schema } = calls
  const places = placesOf(most)

  function begin(): OpenTransaction {
    const opened = calls.track(
      places.take().then(async () =>
        calls.database.begin('isolation level read committed').catch((error: unknown) => {
          places.give()
          throw toMillpondError(error)
        }),
      ),
    )
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
        const outcomes = await pushInside((text, params) => session.run(inlined(text, params)), jobs)
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

  /** Behind a savepoint, which exists only inside a transaction: if the push fails, the transaction goes on. */
  async function pushInside(
    query: Query,
    jobs: readonly NewJob[],
    check?: () => Promise<void>,
  ): Promise<PushOutcome[]> {
    await query('savepoint millpond_push', []).catch((cause: unknown) => {
      throw isAway(cause) ? toMillpondError(cause) : not('it is not an open transaction', cause)
    })
    try {
      await check?.()
      // A queue comes into being by itself: inside this transaction everybody else's first push to it would wait for the end.
      for (const queue of new Set(jobs.map((job) => job.queue))) await calls.answer('make_queue($1)', [queue])
      const now = calls.now()
      const text = `select ${schema}.push_jobs($1::text::json, false, $2::text::bigint) as answer`
      const [row] = await query(text, [jobsText(jobs), now === null ? null : String(now)])
      await query('release savepoint millpond_push', [])
      return ((row?.answer ?? []) as string[]).map(outcomeFrom)
    } catch (error) {
      // Where the transaction itself is over there is nothing to go back to.
      if (stateOf(error) !== '') await query('rollback to savepoint millpond_push', []).catch(() => {})
      // The client's own error holds the statement's parameters, which are the jobs.
      throw toMillpondError(error)
    }
  }

  /** Provokes no error inside a transaction: postgres.js would let it fail at its end, whoever has dealt with the error. */
  async function check(query: Query): Promise<void> {
    const [found] = await query('select to_regprocedure($1::text) is not null as there', [`${schema}.installed()`])
    if (found?.there !== true) throw not(`its database has no schema ${schema} of Millpond`)
    const [row] = await query(`select ${schema}.installed() ->> 'install' as install`, [])
    if (row?.install !== install) throw not('it is a transaction on another database')
  }

  return transactionsBy({
    takesSettings: false,
    assertOpen: () => calls.assertOpen(),
    begin,
    complete: calls.operation((queue, completions) => complete(context, queue, completions)),
    async pushWith(tx, jobs) {
      const query = queryOf(tx)
      return pushInside(query, jobs, () => check(query))
    },
  })
}

const not = (why: string, cause?: unknown) =>
  mismatch(`tx takes an open transaction on the pond's own database; ${why}`, cause)

/** So many may be taken at once; whoever comes later waits for his turn. */
function placesOf(free: number) {
  const waiters: (() => void)[] = []
  return {
    async take(): Promise<void> {
      if (free-- <= 0) await new Promise<void>((resolve) => waiters.push(resolve))
    },
    give(): void {
      free++
      waiters.shift()?.()
    },
  }
}
