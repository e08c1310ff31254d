/** The journals of a worker's jobs: what their steps write goes in shared calls, what an earlier attempt wrote is read once. */

import { Batcher } from '../../batch/batcher.ts'
import { splitting } from '../../batch/splitting.ts'
import type { Store, TransactionQuery } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { Entry, JobRecord, JournalItem, JournalOutcome, NewEntry } from '../../values/jobs/records.ts'
import { needs } from '../../values/operations/capabilities.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import type { Attempt } from '../attempt.ts'
import { tooManySteps } from '../ending.ts'
import { type LeaseHolder, lossOf } from '../leases.ts'
import { readJournal } from './read-journal.ts'

const { firstRetry: FIRST_RETRY, maxRetry: LAST_RETRY } = DEFAULTS.worker
const LIMITS = { items: DEFAULTS.producer.maxItems, bytes: DEFAULTS.producer.maxBytes }

/** What the steps of one attempt ask of the worker. */
export interface StepCalls {
  /**
   * Resolves when the store has the entries.
   * @throws StepsTooLarge, StoreRefused, StaleAttempt and other reasons for which the attempt is over
   */
  write(entries: readonly NewEntry[]): Promise<void>
  /** `now`: the store's time, as the worker knows it, in milliseconds since 1970. @throws `Store…` */
  read(): Promise<{ entries: Entry[]; now: () => number }>
  /** @returns null: the store does not know the job @throws `Store…` */
  find(id: string): Promise<ChildRecord | null>
  /** A transaction for one step. @throws NotSupported, InvalidOption */
  begin(): StepTransaction
}

/** Writes of a step that commit together with its entry. */
export interface StepTransaction {
  readonly query: TransactionQuery
  /** @throws as `write`; nothing is committed then, but after StoreUnavailable it may be */
  commit(entries: readonly NewEntry[]): Promise<void>
  rollback(): Promise<void>
}

/** What a child has come to. */
export type ChildRecord = Pick<JobRecord, 'state' | 'result' | 'error'>

export class JournalCalls {
  readonly #store: Store
  readonly #queue: string
  readonly #holder: Pick<LeaseHolder, 'lost' | 'trouble'>
  readonly #batcher: Batcher<JournalItem, JournalOutcome>

  constructor(store: Store, queue: string, holder: Pick<LeaseHolder, 'lost' | 'trouble'>) {
    this.#store = store
    this.#queue = queue
    this.#holder = holder
    const call = (items: readonly JournalItem[]) => store.operations.journal({ queue, items })
    this.#batcher = new Batcher<JournalItem, JournalOutcome>(
      (items) => splitting(items, call, 'keeping a step'),
      LIMITS,
    )
  }

  of(attempt: Attempt): StepCalls {
    return {
      write: (entries) => this.#write(attempt, entries),
      read: async () => {
        const entries = attempt.claimed.journal ? await readJournal(this.#store, attempt.claimed.id) : []
        return { entries, now: this.#store.clock ?? (() => attempt.storeTime) }
      },
      find: async (id) => {
        const [record = null] = await this.#store.operations.find({ ids: [id] })
        return record && { state: record.state, result: record.result, error: record.error }
      },
      begin: () => this.#begin(attempt),
    }
  }

  #begin(attempt: Attempt): StepTransaction {
    needs(this.#store, 'transactions', 'a step with a transaction')
    const { claimed } = attempt
    const transaction = this.#store.transactions?.begin(this.#queue)
    if (transaction === undefined) throw new MillpondError('StoreFailed', 'the store gave no transaction')
    return {
      query: transaction.query,
      rollback: () => transaction.rollback(),
      commit: async (entries) => {
        const { id, fence } = claimed
        const input = { queue: this.#queue, items: [{ id, fence, claim: claimed, entries }] }
        const [outcome = 'stale'] = await transaction.journal(input)
        if (outcome === 'held') {
          throw new MillpondError('StoreBusy', `another transaction has job ${id}; nothing of its step was kept`, {
            id,
          })
        }
        this.#assertKept(attempt, outcome)
      },
    }
  }

  /** @throws StepsTooLarge, and why the attempt is over */
  #assertKept(attempt: Attempt, outcome: 'ok' | 'full' | 'stale'): void {
    if (outcome === 'ok') return
    if (outcome === 'full') throw tooManySteps(attempt.claimed.id)
    const lost = lossOf(attempt, this.#queue, false)
    this.#holder.lost(attempt, lost)
    throw attempt.stopped ?? lost
  }

  async #write(attempt: Attempt, entries: readonly NewEntry[]): Promise<void> {
    const { claimed } = attempt
    const { id, fence } = claimed
    const bytes = entries.reduce((sum, { name, meta, body }) => sum + name.length + meta.length + lengthOf(body), 0)
    for (let wait = FIRST_RETRY; ; wait = Math.min(wait * 2, LAST_RETRY)) {
      if (attempt.stopped !== undefined) throw attempt.stopped
      try {
        const outcome = await this.#batcher.add({ id, fence, claim: claimed, entries }, bytes)
        if (outcome !== 'held') {
          this.#assertKept(attempt, outcome)
          return
        }
      } catch (error) {
        if (!(error instanceof MillpondError) || !error.retryable) throw error
        this.#holder.trouble(error)
      }
      await new Promise((resolve) => setTimeout(resolve, wait).unref())
    }
  }
}

const lengthOf = (body: NewEntry['body']): number => body?.body.length ?? 0
