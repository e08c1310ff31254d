/**
 * The SQLite store: the embedded default. One file, which may be the application's own database and may be shared by any
 * number of processes on one machine.
 *
 * URL: `sqlite:app.db`, `sqlite:./dir/app.db`, `sqlite:///abs/app.db`. Options, in the URL's query or as the second argument:
 * - `sync`: `full` (default): an acknowledged push is on the disk. `normal`: a power cut may cost the last moments' pushes;
 *   a crash of the process costs nothing.
 * - `busyTimeout` (5000): ms to wait for another connection's lock before `StoreBusy`.
 * - `transactionTimeout` (10000): ms that a handler's transaction may be open before it is rolled back, to let others write.
 *
 * This side only sends calls to a thread (`sqlite/link.ts`) that owns the connection (`sqlite/thread.ts`). The path of a
 * call: here → link → thread → committer (one commit for all that came together) → engine → the SQL of contract/sqlite/.
 */
import '../runtime.ts'
import type {
  Bell,
  Capabilities,
  Claimed,
  ClaimRequest,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HistogramSlice,
  Hold,
  HoldOutcome,
  JobRecord,
  ListRequest,
  NewJob,
  OpenStore,
  PushOutcome,
  QueueSettings,
  QueueStats,
  Store,
  StoreAdmin,
  StoreTransactions,
  Swept,
} from '../store.ts'
import { claimedFrom, copied, flattenCompletions, flattenHolds, packCompletions, packJobs } from './sqlite/flat.ts'
import { Link } from './sqlite/link.ts'
import { holdOutcomes, pushOutcomes } from './sqlite/outcomes.ts'
import { settingsOf } from './sqlite/settings.ts'
import { SqliteTransactions } from './sqlite/transactions.ts'

/** @throws InvalidOption, StoreUnavailable, StoreBusy, StoreFull, StoreCorrupt, StoreVersion, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const settings = settingsOf(url, options)
  return new SqliteStore(await Link.open(settings, options.clock))
}

class SqliteStore implements Store {
  readonly name = 'sqlite'
  readonly capabilities: Capabilities = { durable: true, shared: true, transactions: true }
  readonly transactions: StoreTransactions
  readonly admin: StoreAdmin
  readonly #link: Link

  constructor(link: Link) {
    this.#link = link
    this.transactions = new SqliteTransactions(link)
    this.admin = new SqliteAdmin(link)
  }

  async configure(settings: QueueSettings): Promise<void> {
    await this.#link.call('configure', settings)
  }

  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    return pushOutcomes(jobs, await this.#link.call('push', packJobs(jobs)))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const { jobs, ...claimed } = await this.#link.call('claim', request)
    return { ...claimed, jobs: claimedFrom(jobs) }
  }

  async complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    const packed = packCompletions(completions)
    let stale = await this.#link.call('complete', { queue, packed })
    if (stale === null) stale = await this.#link.call('complete', { queue, packed: flattenCompletions(completions) })
    else if (!Array.isArray(packed)) this.#link.ringFinished(queue, completions)
    return holdOutcomes(completions.length, stale ?? [])
  }

  fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    const sent = failures.map(({ id, fence, error, delay }) => ({ id, fence, error, delay }))
    return this.#link.call('fail', { queue, failures: sent })
  }

  async release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    const stale = await this.#link.call('release', { queue, flat: flattenHolds(holds) })
    return holdOutcomes(holds.length, stale)
  }

  extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    const sent = extensions.map(({ id, fence, progress }) => ({ id, fence, progress: copied(progress) }))
    return this.#link.call('extend', { queue, lease, extensions: sent })
  }

  cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    return this.#link.call('cancel', ids)
  }

  sweep(limit: number): Promise<Swept> {
    return this.#link.call('sweep', limit)
  }

  find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    return this.#link.call('find', ids)
  }

  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]> {
    return this.#link.call('stats', options)
  }

  async record(slices: readonly HistogramSlice[]): Promise<void> {
    await this.#link.call('record', slices)
  }

  listen(listener: (bell: Bell) => void): () => void {
    return this.#link.listen(listener)
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

class SqliteAdmin implements StoreAdmin {
  readonly #link: Link

  constructor(link: Link) {
    this.#link = link
  }

  list(request: ListRequest): Promise<JobRecord[]> {
    return this.#link.call('list', request)
  }

  requeue(request: { ids: readonly string[] } | { queue: string; limit: number }): Promise<number> {
    return this.#link.call('requeue', request)
  }
}
