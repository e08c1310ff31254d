/** What people ask for: lists by state, and bringing jobs back. */
import type { JobRecord, JobState, ListRequest, StoreAdmin } from '../../store.ts'
import { type Cursor, listInput, requeueInput } from './inputs.ts'
import type { Located, Lookup } from './lookup.ts'
import { type Found, foundReply, LETTERS } from './outputs.ts'
import type { Partition } from './partition.ts'
import { Reader } from './reader.ts'
import type { Shared } from './shared.ts'

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
    const { link, queues, now } = this.#shared
    link.assertOpen()
    const partitions = await queues.look(queue)
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
        const from = cursor === null ? null : cursorFor(partition, cursor, state)
        const reply = await link.call('list', partition, listInput(now(), partition, LETTERS[state], limit, from).bytes)
        return foundReply(reply, queue).flatMap((found) => (found === null ? [] : { ...found, index: partition.index }))
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
    if ('ids' in request) {
      if (request.ids.length === 0) return 0
      const { registered, others } = await queues.all()
      const counts = await Promise.all(
        [...registered, ...others].map((partition) => this.#requeue(partition, request.ids, 0)),
      )
      return counts.reduce((sum, count) => sum + count, 0)
    }
    let count = 0
    for (const partition of await queues.look(request.queue)) {
      if (count < request.limit) count += await this.#requeue(partition, null, request.limit - count)
    }
    return count
  }

  async #requeue(partition: Partition, ids: readonly string[] | null, limit: number): Promise<number> {
    const { link, bells, now } = this.#shared
    const input = requeueInput(now(), partition, ids, limit)
    const count = new Reader(await link.call('requeue', partition, input.bytes, { safe: true })).number()
    if (count > 0) bells.work(partition.queue)
    return count
  }
}

const newestFirst = (state: JobState): boolean => state === 'done' || state === 'dead' || state === 'cancelled'

/** Over partitions: by time, and jobs of the same time by partition. Each partition gives its own in its own order. */
function order(state: JobState): (a: Listed, b: Listed) => number {
  const sign = newestFirst(state) ? -1 : 1
  const byPriority = (a: Listed, b: Listed) => (state === 'waiting' ? b.record.priority - a.record.priority : 0)
  return (a, b) => byPriority(a, b) || (a.time - b.time) * sign || a.index - b.index
}

function cursorFor(partition: Partition, { record, place, time, partition: home }: Located, state: JobState): Cursor {
  const { id, priority } = record
  const own = partition.index === home.index ? { id, place } : null
  return { own, priority: state === 'waiting' ? priority : 0, time, ties: partition.index > home.index }
}
