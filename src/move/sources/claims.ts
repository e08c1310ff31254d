/**
 * The jobs of a store that only gives them to workers: they are claimed, and completed when the target has them. A move that is
 * killed loses its claims, and the store gives the jobs to its workers or to the next move.
 */
import { randomUUID } from 'node:crypto'
import type { Store } from '../../store.ts'
import { DEFAULTS } from '../../values/contract-defaults.ts'
import type { ClaimedJob, Hold, JobRecord } from '../../values/records.ts'
import type { Batch, QueueCounts, Source, SourceSettings } from '../source.ts'
import { settingsOf } from './store.ts'

/** Jobs of a batch. */
const BATCH = 1000
/** In ms. */
const LEASE = 60_000
const MAX_JOBS_PER_SWEEP = 1000

export class ClaimSource implements Source {
  readonly name: string
  readonly #store: Store
  readonly #worker = `move:${randomUUID()}`

  constructor(store: Store) {
    this.name = store.name
    this.#store = store
  }

  async counts(): Promise<QueueCounts[]> {
    return (await this.#store.operations.stats({})).map(({ queue, counts }) => ({ queue, counts }))
  }

  settings(queue: string): Promise<SourceSettings | null> {
    return settingsOf(this.#store, queue)
  }

  async *pass(queue: string): AsyncIterable<Batch> {
    for (;;) {
      const request = { queue, worker: this.#worker, limit: BATCH, perGroup: BATCH, lease: LEASE }
      const { jobs, now } = await this.#store.operations.claim(request)
      if (jobs.length === 0) return
      yield new ClaimedBatch(this.#store, queue, jobs, now)
    }
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
  readonly #holds: Map<string, Hold>
  records: readonly JobRecord[]
  renewAt = performance.now() + LEASE / 2

  constructor(store: Store, queue: string, jobs: readonly ClaimedJob[], now: number) {
    this.#store = store
    this.#queue = queue
    this.#holds = new Map(jobs.map((claim) => [claim.id, { id: claim.id, fence: claim.fence, claim }]))
    this.records = jobs.map((job) => recordOf(job, queue, now))
  }

  async renew(): Promise<void> {
    const renewAt = performance.now() + LEASE / 2
    const items = this.#holdsOf(this.records).map((hold) => ({ ...hold, progress: null }))
    const outcomes = await this.#store.operations.extend({ queue: this.#queue, items, lease: LEASE })
    const held = new Set(items.flatMap(({ id }, index) => (outcomes[index] === 'ok' ? id : [])))
    this.records = this.records.filter(({ id }) => held.has(id))
    this.renewAt = renewAt
  }

  async remove(records: readonly JobRecord[]): Promise<void> {
    const items = this.#holdsOf(records).map((hold) => ({ ...hold, result: null }))
    if (items.length > 0) await this.#store.operations.complete({ queue: this.#queue, items })
  }

  async putBack(records: readonly JobRecord[]): Promise<void> {
    const items = this.#holdsOf(records)
    if (items.length > 0) await this.#store.operations.release({ queue: this.#queue, items })
  }

  #holdsOf(records: readonly JobRecord[]): Hold[] {
    return records.flatMap(({ id }) => this.#holds.get(id) ?? [])
  }
}

/** As it was before the claim. */
function recordOf({ attempt, ...job }: ClaimedJob, queue: string, now: number): JobRecord {
  return {
    ...job,
    ...{ queue, state: 'waiting', attempt: attempt - 1, cost: DEFAULTS.job.cost },
    dueAt: Math.min(job.dueAt, now),
    ...{ startedAt: null, finishedAt: null, worker: null, progress: null, result: null, error: null },
  }
}
