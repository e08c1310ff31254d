/** The tools of both runners: decoding, time limit, transaction, ending. Runners never claim jobs or free slots. */

import type { StoreTransaction, StoreTransactions } from '../store.ts'
import { decode } from '../values/encoding/encoding.ts'
import { type StandardSchema, validate } from '../values/encoding/schema.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { PondEmitter } from '../values/jobs/events.ts'
import { Job } from '../values/jobs/job.ts'
import type { Attempt } from './attempt.ts'
import type { ContextTerms, RunnerTerms } from './attempt-context.ts'
import { Deadline } from './deadline.ts'
import { type Committed, type Completed, type Ending, parked } from './ending.ts'
import { type EndingSettings, endingRules } from './ending-rules.ts'
import type { Replica } from './replica.ts'
import type { Stoppable } from './stop-signal.ts'

export interface RunnerSettings extends EndingSettings {
  /** Complete in the handler's own transaction. */
  transaction: boolean
  /** Handlers wait until it shows what their jobs' pushers committed. */
  replica?: Pick<Replica, 'wait'> | undefined
  schema: StandardSchema<unknown, unknown> | undefined
}

type Told = Pick<PondEmitter, 'trouble' | 'failure'>

export type RunnerTools = ReturnType<typeof runnerTools>

/** @param end told how attempts end; not of those that were stopped before */
export function runnerTools(
  store: { transactions?: Pick<StoreTransactions, 'begin'> | undefined },
  settings: RunnerSettings,
  terms: ContextTerms,
  told: Told,
  end: (endings: readonly Ending[]) => void,
) {
  const { queue, schema } = settings
  const rules = endingRules(settings, told)
  const runnerTerms: RunnerTerms = {
    ...terms,
    park(attempt, park) {
      if (!attempt.isOpen) return
      const { id } = attempt.claimed
      const ending = parked(attempt, park)
      attempt.deadline?.cancel()
      attempt.stop(new MillpondError('JobParked', `job ${id} is parked, so this attempt is over`, { id }))
      end([ending])
    },
  }
  return {
    settings,
    terms: runnerTerms,
    rules,
    end,

    /** @throws PayloadNotDecodable, SchemaMismatch */
    async job({ claimed }: Attempt): Promise<Job> {
      const data = decode(claimed.data, 'data')
      return new Job(queue, claimed, schema === undefined ? data : await validate(schema, data, queue))
    },

    /** The job's timeout begins. At its end the attempt has failed, if it is open by then: a commit under way decides by itself. */
    watchTimeout(attempt: Attempt): void {
      const { id, timeout } = attempt.claimed
      if (timeout === null) return
      attempt.deadline = new Deadline(timeout, () => {
        if (!attempt.isOpen) return
        const error = new MillpondError('TimedOut', `job ${id} ran longer than its timeout of ${timeout} ms`, { id })
        const ending = rules.ofError(attempt, error)
        attempt.stop(error)
        end([ending])
      })
    },

    /** @returns undefined: handlers have none. @param run it is rolled back when this is stopped */
    begin(run: Stoppable): StoreTransaction | undefined {
      if (!settings.transaction) return undefined
      const transaction = store.transactions?.begin(queue)
      // If even the rollback fails, the store has let go of the transaction by itself.
      run.whenStopped(() => void transaction?.rollback().catch(() => {}))
      return transaction
    },

    /** Commits what the handler wrote together with the completions, unless one of them is stale. */
    async commit(transaction: StoreTransaction, endings: readonly Completed[]): Promise<Committed[]> {
      const items = endings.map(({ id, fence, result, log }) => ({ id, fence, result, log }))
      const outcomes = await transaction.complete({ queue, items })
      return endings.map(({ attempt, value }, index) => {
        return { kind: 'committed', attempt, value, outcome: outcomes[index] ?? 'stale' }
      })
    },

    async rollBack(transaction: StoreTransaction | undefined): Promise<void> {
      try {
        await transaction?.rollback()
      } catch (failure) {
        if (failure instanceof MillpondError) told.trouble(failure)
      }
    },
  }
}
