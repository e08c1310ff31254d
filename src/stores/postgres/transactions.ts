/**
 * Transactions of handlers, and pushes inside the caller's own.
 *
 * A handler's transaction has a connection of the pool until its end. Most of them may be open at once, but not all: the store's own calls,
 * on which the handlers may wait, need one.
 */

import type { OfQueue, PushInTransaction, StoreTransactions } from '../../store.ts'
import type { Completion, JournalOutcome, PushOutcome } from '../../values/jobs/records.ts'
import { hasParents } from '../lacking.ts'
import { mismatch, type OpenTransaction, transactionsBy } from '../transactions.ts'
import { type Ask, askOf } from './connection/caller-transaction.ts'
import type { Session } from './connection/database.ts'
import { look } from './connection/migrate.ts'
import { inlined } from './connection/script.ts'
import type { StoreContext } from './context.ts'
import { isAway, statementError, stateOf, toMillpondError } from './errors.ts'
import { COMPLETE, complete, completeValues } from './operations/end.ts'
import { JOURNAL, journalValues, PATIENCE, whileHeld } from './operations/journal.ts'
import { holdOutcomes, jobsText, outcomeFrom } from './wire.ts'

/** @param most how many handlers may hold a transaction at once @param install see `migrate` */
export function transactionsOf(context: StoreContext, most: number, install: string): StoreTransactions {
  const { calls, notifier } = context
  const { schema } = calls
  const permits = permitsOf(most)
  let known = install

  function begin(): OpenTransaction {
    const opened = calls.track(
      permits.take().then(async () =>
        calls.database.begin('isolation level read committed, read write').catch((error: unknown) => {
          permits.give()
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
        permits.give()
      }
    }

    return {
      async query(text, params) {
        const session = await opened
        return session.query(text, params).catch((error: unknown) => {
          throw statementError(error)
        })
      },
      async push(input) {
        const session = await opened
        const outcomes = await pushInside(
          async (text, params) => (await session.run(inlined(text, params)))[0]?.[0] ?? null,
          input,
        )
        for (const { queue } of input.jobs) pushed.add(queue)
        return outcomes
      },
      async complete(input) {
        const { queue, items } = input
        const script = calls.inside(COMPLETE, completeValues(input, calls.now()))
        const last = ended(async (session) => {
          const [[answer] = []] = await session.run(script)
          await session.end(answer === null ? 'commit' : 'rollback')
          return answer === null ? null : (JSON.parse(answer ?? '[]') as number[])
        })
        const held = await calls.track(last)
        if (held === null) {
          for (const { id } of items) notifier.bells.ring('finished', queue, id)
          for (const each of pushed) notifier.bells.ring('work', each)
        }
        return holdOutcomes(items, held)
      },
      async journal(input) {
        const last = ended(async (session) => {
          // The transaction may hold locks itself: it waits no longer than a call outside.
          const outcomes = await whileHeld(input.items, PATIENCE, async (items) => {
            const script = calls.inside(JOURNAL, journalValues({ queue: input.queue, items }))
            const [[answer] = []] = await session.run(script)
            return JSON.parse(answer ?? '[]') as JournalOutcome[]
          })
          await session.end(outcomes.every((outcome) => outcome === 'ok') ? 'commit' : 'rollback')
          return outcomes
        })
        const outcomes = await calls.track(last)
        for (const each of pushed) if (outcomes.every((one) => one === 'ok')) notifier.bells.ring('work', each)
        return outcomes
      },
      rollback: () => calls.track(ended((session) => session.end('rollback'))),
    }
  }

  /** Behind a savepoint, which exists only inside a transaction: if the push fails, the transaction goes on. */
  async function pushInside(
    ask: Ask,
    { jobs, whole = false }: Omit<PushInTransaction, 'tx'>,
    check?: () => Promise<void>,
  ): Promise<PushOutcome[]> {
    await ask('savepoint millpond_push', []).catch((cause: unknown) => {
      throw isAway(cause) ? toMillpondError(cause) : not('it is not an open transaction', cause)
    })
    try {
      await check?.()
      // A queue comes into being by itself: inside this transaction everybody else's first push to it would wait for the end.
      for (const queue of new Set(jobs.map((job) => job.queue))) await calls.done('make_queue($1)', [queue])
      const now = calls.now()
      const given = '$1::pg_catalog.text::pg_catalog.json, false, $2::pg_catalog.text::pg_catalog.int8'
      const isGraph = whole || jobs.some(hasParents)
      const push = `${schema}.${isGraph ? `push_graph(${given}, whole => ${whole})` : `push_jobs(${given})`}`
      const text = `select pg_catalog.to_json(${push})::pg_catalog.text as answer`
      const answer = await ask(text, [jobsText(jobs), now === null ? null : String(now)])
      await ask('release savepoint millpond_push', [])
      return outcomesIn(answer).map(outcomeFrom)
    } catch (error) {
      // Where the transaction itself is over there is nothing to go back to.
      if (stateOf(error) !== '') await ask('rollback to savepoint millpond_push', []).catch(() => {})
      // The client's own error holds the statement's parameters, which are the jobs.
      throw toMillpondError(error)
    }
  }

  /** Provokes no error inside a transaction: postgres.js would let it fail at its end, whoever has dealt with the error. */
  async function check(ask: Ask): Promise<void> {
    const found = await ask('select pg_catalog.to_regprocedure($1::pg_catalog.text)::pg_catalog.text as answer', [
      `${schema}.installed()`,
    ])
    if (found === null) throw not(`its database has no schema ${schema} of Millpond`)
    const theirs = () => ask(`select pg_catalog.json_extract_path_text(${schema}.installed(), 'install') as answer`, [])
    if ((await theirs()) === known) return
    // The schema may have been restored since.
    known = (await look((script) => calls.database.run(script), schema)).install
    if ((await theirs()) !== known) throw not('it is a transaction on another database')
  }

  return transactionsBy({
    takesSettings: false,
    assertOpen: () => calls.assertOpen(),
    begin,
    complete: calls.operation((input: OfQueue<Completion>) => complete(context, input)),
    async pushWith({ tx, ...input }) {
      const ask = askOf(tx)
      return pushInside(ask, input, () => check(ask))
    },
  })
}

function outcomesIn(answer: string | null): string[] {
  if (answer === null) throw not('it gave no answer to a push: a function must return the rows of the statement')
  return JSON.parse(answer)
}

const not = (why: string, cause?: unknown) =>
  mismatch(`tx takes an open transaction on the pond's own database; ${why}`, cause)

/** So many may be taken at once; further callers wait until one is given back. */
function permitsOf(free: number) {
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
