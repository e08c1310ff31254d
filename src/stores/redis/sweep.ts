/**
 * Sweeps all queues: asks each hash tag which of its partitions have something to do, and goes to those, until a limit is reached. So a sweep costs
 * what is due, not how many queues there are. What cannot be reached does not keep the rest from being swept; that is told by rejecting, but
 * only when nothing was swept, since what was lost is told by the answer alone.
 */
import type { Swept } from '../../store.ts'
import { BUCKETS, type Partition, parsedPart, tagOf } from './partition.ts'
import { removeQueue } from './remove.ts'
import { type SweepReply, statsReply, sweepReply } from './replies.ts'
import { settled, type Trouble } from './settled.ts'
import { MOST_ITEMS, type Shared } from './shared.ts'
import { numberIn, textIn } from './wire.ts'

/** Queues that one sweep removes. */
const MOST_REMOVED = 100

interface Due {
  next: number | null
  partitions: Partition[]
}

export class Sweeper {
  readonly #shared: Shared
  readonly #prefix: string
  /** The bucket that comes first: each in turn, so that none waits for ever behind others. */
  #turn = 0

  constructor(shared: Shared, prefix: string) {
    this.#shared = shared
    this.#prefix = prefix
  }

  async sweep(limit: number): Promise<Swept> {
    this.#shared.link.assertOpen()
    const turn = this.#turn++ % BUCKETS
    const buckets = Array.from({ length: BUCKETS }, (_, i) => (i + turn) % BUCKETS)
    const looks = await settled(buckets.map((bucket) => this.#due(bucket, Math.min(limit, MOST_ITEMS))))
    let trouble: Trouble | undefined = looks.failure
    const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0 }
    const idle = new Set<string>()
    const sweptTags = new Set<number>()
    for (const due of looks.replies) {
      for (const partition of due?.partitions ?? []) {
        const { failure } = await settled([this.#sweepOne(partition, limit, swept, idle)])
        trouble ??= failure
        sweptTags.add(partition.bucket)
      }
    }
    // What the sweep found is told all the same where this fails.
    await settled([...idle].map((name) => removeQueue(this.#shared, name)))
    const { replies: counts, failure } = await settled([this.#shared.queues.count()])
    swept.queues = counts[0] ?? 0
    if (failure === undefined && swept.queues < this.#shared.queues.knownCount) await settled([this.#relist()])
    trouble ??= failure
    const nothing = swept.promoted === 0 && swept.expired === 0 && swept.lost.length === 0
    if (nothing && trouble !== undefined) throw trouble.reason
    swept.more = swept.promoted >= limit || swept.lost.length >= limit || swept.expired >= limit
    const again = await settled(
      buckets.map(async (bucket, i) => (sweptTags.has(bucket) ? this.#due(bucket, 0) : looks.replies[i])),
    )
    for (const due of again.replies) {
      if (typeof due?.next === 'number') swept.nextDue = Math.min(swept.nextDue ?? due.next, due.next)
    }
    return swept
  }

  async #due(bucket: number, limit: number): Promise<Due> {
    const tag = tagOf(this.#prefix, bucket)
    const target = { tag, keys: [`${tag}:due`, `${tag}:ends`] }
    const [next, ...parts] = await this.#shared.link.call('due', target, [this.#shared.now() ?? '', limit])
    const partitions = parts.map((part) => {
      const { queue, index } = parsedPart(textIn(part))
      return this.#shared.queues.partition(queue, index)
    })
    const ms = numberIn(next)
    return { next: ms < 0 ? null : ms, partitions }
  }

  async #sweepOne(partition: Partition, limit: number, swept: Swept, idle: Set<string>): Promise<void> {
    for (;;) {
      const limits = [swept.promoted, swept.lost.length, swept.expired].map((done) =>
        Math.min(limit - done, MOST_ITEMS),
      )
      const reply = sweepReply(await this.#shared.ask('sweep', partition, limits))
      this.#add(swept, partition.queue, reply)
      if (reply.idle && idle.size < MOST_REMOVED) idle.add(partition.queue)
      const counts = [reply.promoted, reply.lost.length, reply.expired]
      if (!counts.some((count) => count === MOST_ITEMS)) return
    }
  }

  /** The list of queues has lost some: those that hold jobs get back into it, the others are forgotten. */
  async #relist(): Promise<void> {
    const { queues } = this.#shared
    for (const name of await queues.unlisted()) {
      const partitions = queues.known(name) ?? []
      const replies = await Promise.all(partitions.map((partition) => this.#shared.ask('stats', partition, [0])))
      const holds = replies.some((reply) => Object.values(statsReply(reply, name).counts).some((count) => count > 0))
      if (holds) await queues.create(name)
      else queues.forget(name)
    }
  }

  #add(swept: Swept, queue: string, { promoted, expired, lost }: SweepReply): void {
    const { bells } = this.#shared
    swept.promoted += promoted
    swept.expired += expired
    for (const { id, attempt, state } of lost) {
      swept.lost.push({ id, queue, attempt, state })
      if (state === 'dead') bells.ring('finished', queue, id)
    }
    if (promoted > 0 || lost.some(({ state }) => state === 'waiting')) bells.ring('work', queue)
  }
}
