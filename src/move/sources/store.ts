/**
 * The jobs of a store that lists, changes and removes them. A job that waits, or is soon due, is taken by scheduling it a while ahead:
 * then no worker of the source can start it, limits and pauses do not matter, and no attempt is counted. If the move is killed, it comes
 * due again, and the job waits at its old place.
 *
 *   waiting ──update──► scheduled, for HOLD ──► the target stores it ──► removed
 *                           └─ the move is killed, or the target refuses it: it comes due
 *
 * Nothing ends a hold early. Another move of the same source, or the one after this, may have taken the job as well and stored it, and then
 * has the rest of its own hold to remove it.
 */

import type { Store } from '../../store.ts'
import type { MillpondError } from '../../values/errors/errors.ts'
import type { JobRecord, JobState } from '../../values/jobs/records.ts'
import type { JobUpdate } from '../../values/operations/requests.ts'
import type { GroupRecord } from '../../values/settings/limits.ts'
import { type Batch, parted, type QueueCounts, type Source, type SourceGraph, type SourceSettings } from '../source.ts'
import { withEntries } from './entries.ts'
import { childrenOf, placesOf, withParents } from './graph.ts'

/** Jobs of a batch. */
const BATCH = 1000
/** In ms: how long a taken job is kept from the workers of the source. */
const HOLD = 60_000
/** In ms: a job that the target has refused is left to the workers of the source for as long as it was kept from them. */
const REST = 2 * HOLD
/** In ms: scheduled jobs that are due later than this cannot start meanwhile, so they are not touched. More than clocks differ. */
const FAR = 300_000
const MAX_JOBS_PER_SWEEP = 1000
const STATES: readonly JobState[] = ['blocked', 'waiting', 'scheduled', 'dead', 'cancelled', 'done']

const isLive = (record: JobRecord): boolean => ['blocked', 'waiting', 'scheduled'].includes(record.state)

export class StoreSource implements Source {
  readonly name: string
  readonly graph?: SourceGraph
  readonly #store: Store
  readonly #passedOver = new PassedOver()

  constructor(store: Store) {
    this.name = store.name
    this.#store = store
    if (!store.capabilities.graphs) return
    this.graph = {
      childrenOf: (records) => childrenOf(store, records),
      take: (ids) => this.#take(ids),
      queuesOf: async (ids) => new Map([...(await placesOf(store, ids))].map(([id, { queue }]) => [id, queue])),
    }
  }

  async #take(ids: readonly string[]): Promise<Batch[]> {
    const batches: Batch[] = []
    for (let at = 0; at < ids.length; at += BATCH) {
      const found = await this.#store.operations.find({ ids: ids.slice(at, at + BATCH) })
      const blocked = found.filter((record) => record?.state === 'blocked')
      for (const records of Map.groupBy(blocked, (record) => record?.queue).values()) {
        const batch = new HeldBatch(
          this.#store,
          this.#passedOver,
          records.filter((record) => record !== null),
        )
        await batch.renew()
        batches.push(batch)
      }
    }
    return batches
  }

  rests(id: string): boolean {
    return this.#passedOver.has(id)
  }

  async counts(): Promise<QueueCounts[]> {
    return (await this.#store.operations.stats({})).map(({ queue, counts }) => ({ queue, counts }))
  }

  settings(queue: string): Promise<SourceSettings | null> {
    return settingsOf(this.#store, queue)
  }

  /** Taken jobs are due within HOLD, so they are the first of those that are scheduled. */
  leftovers(queue: string): AsyncIterable<Batch> {
    return this.#list(queue, 'scheduled', Date.now() + FAR)
  }

  async *pass(queue: string): AsyncIterable<Batch> {
    // Before they come due again: the waiting ones may take longer.
    yield* this.leftovers(queue)
    for (const state of STATES) yield* this.#list(queue, state)
  }

  /** @param until goes on up to jobs that are due later */
  async *#list(queue: string, state: JobState, until = Number.POSITIVE_INFINITY): AsyncIterable<Batch> {
    let after: string | undefined
    do {
      const request = { queue, state, limit: BATCH, ...(after !== undefined && { after }) }
      const page = await this.#store.operations.list(request)
      after = page.next ?? undefined
      const records = page.jobs
        // A follower goes after the job that it follows.
        .filter(({ id, dueAt, follows }) => dueAt <= until && follows !== true && !this.#passedOver.has(id))
        .map(({ cursor: _, ...record }) => record)
      const batch = new HeldBatch(this.#store, this.#passedOver, records)
      await batch.renew()
      if (batch.records.length > 0 || batch.refused.size > 0) yield batch
      if ((page.jobs.at(-1)?.dueAt ?? 0) > until) return
    } while (after !== undefined)
  }

  async runsOlder(queue: string, time: number): Promise<boolean> {
    let after: string | undefined
    do {
      const filter = { pushedBefore: time }
      const request = { queue, state: 'running' as const, limit: 1, filter, ...(after !== undefined && { after }) }
      const page = await this.#store.operations.list(request)
      if (page.jobs.length > 0) return true
      after = page.next ?? undefined
    } while (after !== undefined)
    return false
  }

  async tend(): Promise<void> {
    await this.#store.operations.sweep({ limit: MAX_JOBS_PER_SWEEP })
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

class HeldBatch implements Batch {
  readonly #store: Store
  readonly #passedOver: PassedOver
  records: readonly JobRecord[]
  renewAt: number
  readonly refused = new Map<string, MillpondError>()

  constructor(store: Store, passedOver: PassedOver, records: readonly JobRecord[]) {
    this.#store = store
    this.#passedOver = passedOver
    this.records = records
    // Nobody starts a finished job.
    this.renewAt = records.some(isLive) ? 0 : Number.POSITIVE_INFINITY
    for (const { id } of records) passedOver.add(id)
  }

  async renew(): Promise<void> {
    if (this.renewAt === Number.POSITIVE_INFINITY) return
    const renewAt = performance.now() + HOLD / 2
    const now = Date.now()
    // A hold ends no sooner than the job is due, so that a job whose move is killed is not early.
    const items = this.records.flatMap(({ id, state, dueAt }): JobUpdate[] => {
      if (state === 'waiting') return [{ id, delay: HOLD }]
      return dueAt > now + FAR ? [] : [{ id, delay: Math.max(HOLD, dueAt - now) }]
    })
    const outcomes = await parted(items, (some) => this.#store.operations.update({ items: some }), this.refused)
    const lost = new Set(items.flatMap(({ id }, index) => (outcomes[index] === 'updated' ? [] : id)))
    if (lost.size > 0) {
      this.records = this.records.filter(({ id }) => !lost.has(id))
      for (const id of lost) {
        if (this.refused.has(id)) this.#passedOver.add(id, REST)
        else this.#passedOver.delete(id)
      }
    }
    this.records = await withEntries(this.#store, await withParents(this.#store, this.records))
    this.renewAt = renewAt
  }

  async remove(records: readonly JobRecord[]): Promise<void> {
    const remove = async (some: readonly JobRecord[]): Promise<true[]> => {
      await this.#store.operations.remove({ ids: some.map(({ id }) => id) })
      return some.map(() => true)
    }
    const removed = await parted(records, remove, this.refused)
    // One that stays there is not stored again.
    for (const [index, { id }] of records.entries()) if (removed[index]) this.#passedOver.delete(id)
  }

  async putBack(records: readonly JobRecord[], rests: boolean): Promise<void> {
    for (const { id } of records) {
      if (rests) this.#passedOver.add(id, REST)
      else this.#passedOver.delete(id)
    }
  }

  async abandon(): Promise<void> {}
}

/** Jobs that a list shows, and that this move takes no more, or not yet: those that it has taken, and those that rest. */
class PassedOver {
  /** By id, `performance.now()` until which. */
  readonly #until = new Map<string, number>()

  add(id: string, ms = Number.POSITIVE_INFINITY): void {
    this.#until.set(id, performance.now() + ms)
  }

  delete(id: string): void {
    this.#until.delete(id)
  }

  has(id: string): boolean {
    const until = this.#until.get(id)
    if (until === undefined) return false
    if (until > performance.now()) return true
    this.#until.delete(id)
    return false
  }
}

const GROUPS_PER_CALL = 1000

export async function settingsOf(store: Store, queue: string): Promise<SourceSettings | null> {
  if (!store.capabilities.settings) return null
  const report = await store.operations.settings({ queue })
  if (report === null) return null
  const groups: GroupRecord[] = []
  let after: string | undefined
  while (store.capabilities.groups && report.values.grouped) {
    const request = { queue, limit: GROUPS_PER_CALL, ...(after !== undefined && { after }) }
    const page = await store.operations.groups(request)
    groups.push(...page.filter(({ limits }) => limits !== null))
    after = page.at(-1)?.group
    if (page.length < GROUPS_PER_CALL) break
  }
  const { code, operator, values } = report
  return { code, operator, paused: values.paused, grouped: values.grouped, groups }
}
