/**
 * The jobs of a store that only gives them to workers: they are claimed, and completed when the target has them. A move that is
 * killed loses its claims, and the store gives the jobs to its workers or to the next move.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../store.ts'
import type { MillpondError } from '../../values/errors/errors.ts'
import type { ClaimedJob, Completion, Extension, Hold, JobRecord } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { type Batch, parted, type QueueCounts, type Source, type SourceSettings } from '../source.ts'
import { withHeaders } from './headers.ts'
import { settingsOf } from './store.ts'

/** Jobs of a batch. */
const BATCH = 1000
/** In ms. */
const LEASE = 60_000
/** So many of them in a row end a pass, as a store may still be fetching jobs. */
const SHORT_BATCHES = 5
/** In ms: the longest time between claims where there was no job. */
const PAUSE = 50
const MAX_JOBS_PER_SWEEP = 1000

export class ClaimSource implements Source {
  readonly name: string
  readonly #store: Store
  readonly #worker = `move:${randomUUID()}`

  readonly #headers: boolean

  /** @param headers whether those of foreign messages are kept */
  constructor(store: Store, headers: boolean) {
    this.name = store.name
    this.#store = store
    this.#headers = headers
  }

  /** A store may list only the queues that it was asked for. */
  async counts(names?: readonly string[]): Promise<QueueCounts[]> {
    const asked = names?.map((queue) => ({ queue })) ?? [{}]
    const stats = await Promise.all(asked.map((each) => this.#store.operations.stats(each)))
    return stats.flat().map(({ queue, counts }) => ({ queue, counts }))
  }

  settings(queue: string): Promise<SourceSettings | null> {
    return settingsOf(this.#store, queue)
  }

  /** The store gives them to the next claim. */
  async *leftovers(): AsyncIterable<Batch> {}

  /** Takes as many jobs as there are now: where producers go on, the queue may never be empty. */
  async *pass(queue: string): AsyncIterable<Batch> {
    const [stats] = await this.#store.operations.stats({ queue })
    let left = stats?.counts.waiting ?? 0
    for (let short = 0; short < SHORT_BATCHES && left > 0; ) {
      const batch = await this.#take(queue)
      left -= batch.records.length
      // Workers of the source may have had the others: only what producers push is still to come.
      short = batch.records.length < BATCH ? short + 1 : 0
      if (batch.records.length > 0) yield batch
      else await this.#bell()
    }
  }

  /** A whole batch, or all that there is: a store gives what it has fetched by now. */
  async #take(queue: string): Promise<ClaimedBatch> {
    const batch = new ClaimedBatch(this.#store, queue)
    for (;;) {
      const limit = BATCH - batch.records.length
      const request = { queue, worker: this.#worker, limit, perGroup: limit, lease: LEASE }
      const { jobs, now } = await this.#store.operations.claim(request)
      batch.add(
        jobs,
        jobs.map((job) => recordOf(job, queue, now, this.#headers)),
      )
      if (jobs.length === 0 || batch.records.length === BATCH) return batch
    }
  }

  /** Until the store may have jobs, or PAUSE is over. */
  async #bell(): Promise<void> {
    const rung = new AbortController()
    const unlisten = this.#store.listen(() => rung.abort())
    await sleep(PAUSE, undefined, { signal: rung.signal }).catch(() => {})
    unlisten()
  }

  async runsOlder(queue: string): Promise<boolean> {
    const [stats] = await this.#store.operations.stats({ queue })
    return (stats?.counts.running ?? 0) > 0
  }

  async tend(): Promise<void> {
    await this.#store.operations.sweep({ limit: MAX_JOBS_PER_SWEEP })
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

class ClaimedBatch implements Batch {
  readonly #store: Store
  readonly #queue: string
  readonly #holds = new Map<string, Hold>()
  records: readonly JobRecord[] = []
  readonly refused = new Map<string, MillpondError>()
  /** Of the first claim. */
  renewAt = performance.now() + LEASE / 2

  constructor(store: Store, queue: string) {
    this.#store = store
    this.#queue = queue
  }

  /** @param records of the jobs */
  add(jobs: readonly ClaimedJob[], records: readonly JobRecord[]): void {
    for (const claim of jobs) this.#holds.set(claim.id, { id: claim.id, fence: claim.fence, claim })
    this.records = [...this.records, ...records]
  }

  async renew(): Promise<void> {
    const renewAt = performance.now() + LEASE / 2
    const items = this.#holdsOf(this.records).map((hold) => ({ ...hold, progress: null }))
    const { operations } = this.#store
    const extend = (some: readonly Extension[]) => operations.extend({ queue: this.#queue, items: some, lease: LEASE })
    const outcomes = await parted(items, extend, this.refused)
    const held = new Set(
      items.flatMap(({ id }, index) => (outcomes[index] === 'ok' || outcomes[index] === 'held' ? id : [])),
    )
    this.records = this.records.filter(({ id }) => held.has(id))
    this.renewAt = renewAt
  }

  async remove(records: readonly JobRecord[]): Promise<void> {
    const items = this.#holdsOf(records).map((hold) => ({ ...hold, result: null }))
    const complete = (some: readonly Completion[]) =>
      this.#store.operations.complete({ queue: this.#queue, items: some })
    await parted(items, complete, this.refused)
  }

  async putBack(records: readonly JobRecord[]): Promise<void> {
    const items = this.#holdsOf(records)
    const release = (some: readonly Hold[]) => this.#store.operations.release({ queue: this.#queue, items: some })
    await parted(items, release, this.refused)
  }

  /** A claim is this move's alone, as its fence says. */
  abandon(): Promise<void> {
    return this.putBack(this.records)
  }

  #holdsOf(records: readonly JobRecord[]): Hold[] {
    return records.flatMap(({ id }) => this.#holds.get(id) ?? [])
  }
}

/** As it was before the claim. */
function recordOf(job: ClaimedJob, queue: string, now: number, keepsHeaders: boolean): JobRecord {
  const { id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, data } = job
  return {
    ...{ id, queue, state: 'waiting', priority, attempt: attempt - 1, attempts, fence, key, group, timeout, trace },
    ...{ cost: DEFAULTS.job.cost, pushedAt, dueAt: Math.min(dueAt, now) },
    data: keepsHeaders && 'headers' in job ? withHeaders(data, job.headers) : data,
    ...{ startedAt: null, finishedAt: null, worker: null, progress: null, result: null, error: null },
  }
}
