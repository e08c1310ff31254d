/** What people ask for: lists by state, and bringing jobs back. */
import type { JobRecord, JobState, ListRequest, StoreAdmin } from '../../store.ts'
import { idBytes } from './ids.ts'
import type { Located, Lookup } from './lookup.ts'
import type { Partition } from './partition.ts'
import { type Found, foundReply } from './replies.ts'
import { MOST_ITEMS, pieces, type Shared } from './shared.ts'
import { numberIn } from './wire.ts'

interface Listed extends Found {
  index: number
}

export class RedisAdmin implements StoreAdmin {
  readonly #shared: Shared
  readonly #lookup: Lookup

  constructor(shared: Shared, lookup: Lookup) {
    this.#shared = shared
    this.#lookup = lookup
  }

  async list({ queue, state, limit, after }: ListRequest): Promise<JobRecord[]> {
    const { link, queues } = this.#shared
    link.assertOpen()
    const partitions = await queues.look(queue)
    const records: JobRecord[] = []
    // What a script does is bounded, so a long list is several.
    for (let last = after; records.length < limit; last = records.at(-1)?.id) {
      const most = Math.min(limit - records.length, MOST_ITEMS)
      const page = await this.#page(partitions, {
        queue,
        state,
        limit: most,
        ...(last === undefined ? {} : { after: last }),
      })
      records.push(...page)
      if (page.length < most) break
    }
    return records
  }

  async #page(partitions: readonly Partition[], { queue, state, limit, after }: ListRequest): Promise<JobRecord[]> {
    let cursor: Located | null = null
    if (after !== undefined) {
      const [found] = await this.#lookup.find([after])
      // A page after a job that has gone, or has moved on to another state, has no place to begin.
      if (found === undefined || found === null || found.record.queue !== queue || found.record.state !== state)
        return []
      cursor = found
    }
    const pages = await Promise.all(
      partitions.map(async (partition): Promise<Listed[]> => {
        const own = cursor?.partition.index === partition.index ? idBytes(cursor.record.id) : undefined
        const head = [state, limit, cursor === null ? null : cursorFor(partition, cursor, state)]
        const reply = await this.#shared.ask('list', partition, head, own === undefined ? [] : [own])
        return foundReply(reply, queue).map((found) => ({ ...found, index: partition.index }))
      }),
    )
    if (pages.length === 1) return (pages[0] ?? []).map(({ record }) => record)
    return pages
      .flat()
      .sort(order(state))
      .slice(0, limit)
      .map(({ record }) => record)
  }

  async requeue(request: { ids: readonly string[] } | { queue: string; limit: number }): Promise<number> {
    const { link, queues } = this.#shared
    link.assertOpen()
    if ('ids' in request) return this.#requeueThese(request.ids)
    let count = 0
    for (const partition of await queues.look(request.queue))
      count += await this.#requeueDead(partition, request.limit - count)
    return count
  }

  async #requeueThese(ids: readonly string[]): Promise<number> {
    const places = new Map<Partition, Buffer[]>()
    for (const found of await this.#lookup.find(ids)) {
      if (found !== null)
        places.set(found.partition, [...(places.get(found.partition) ?? []), idBytes(found.record.id)])
    }
    const calls = [...places].flatMap(([partition, own]) =>
      pieces(own).map((some) => this.#requeue(partition, 0, 0, some)),
    )
    return (await Promise.all(calls)).reduce((sum, { back }) => sum + back, 0)
  }

  /** Those whose key is taken are passed over, so that they cannot fill the limit and hide others for ever. */
  async #requeueDead(partition: Partition, limit: number): Promise<number> {
    let count = 0
    for (let passed = 0; count < limit; ) {
      const most = Math.min(limit - count, MOST_ITEMS)
      const { back, stayed } = await this.#requeue(partition, most, passed, [])
      count += back
      passed += stayed
      if (back + stayed < most) break
    }
    return count
  }

  async #requeue(partition: Partition, limit: number, from: number, ids: readonly Buffer[]) {
    const answer = await this.#shared.ask('requeue', partition, [limit, from], ids, { safe: true })
    const [back = 0, stayed = 0] = answer.map(numberIn)
    if (back > 0) this.#shared.bells.ring('work', partition.queue)
    return { back, stayed }
  }
}

const newestFirst = (state: JobState): boolean => state === 'done' || state === 'dead' || state === 'cancelled'

/** Over partitions: by time, and jobs of the same time by partition. Each partition gives its own in its own order. */
function order(state: JobState): (a: Listed, b: Listed) => number {
  const sign = newestFirst(state) ? -1 : 1
  const byPriority = (a: Listed, b: Listed) => (state === 'waiting' ? b.record.priority - a.record.priority : 0)
  return (a, b) => byPriority(a, b) || (a.time - b.time) * sign || a.index - b.index
}

/** As `list.lua` takes it: [own, priority, place, time, ties]. */
function cursorFor(
  partition: Partition,
  { record, place, time, partition: home }: Located,
  state: JobState,
): unknown[] {
  const own = partition.index === home.index
  const priority = state === 'waiting' ? record.priority : 0
  return [own, priority, own ? place : false, time, partition.index > home.index]
}
