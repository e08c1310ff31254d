/**
 * Claims, over all partitions of a queue. One partition is asked for everything, each time the next one; where it comes short, the others
 * share what is missing. So order holds within a partition, and over all of them about: a claim that is smaller than the backlog of its
 * first partition sees no other.
 */
import { randomInt } from 'node:crypto'
import type { Claimed, ClaimedJob, ClaimRequest } from '../../store.ts'
import { claimInput } from './inputs.ts'
import { type ClaimReply, claimReply } from './outputs.ts'
import type { Partition } from './partition.ts'
import { settled, type Trouble } from './settled.ts'
import type { Shared } from './shared.ts'

export class Claimer {
  readonly #shared: Shared
  /** Of jobs that are not where their id says, because they have a key. */
  readonly #elsewhere = new WeakMap<ClaimedJob, number>()
  #turn = 0
  /** Names each call, for when its answer is lost. */
  #call = randomInt(2 ** 32)

  constructor(shared: Shared) {
    this.#shared = shared
  }

  /** In which partition a claim is, where that isn't the one of its id. */
  partitionOf(claim: ClaimedJob | undefined): number | undefined {
    return claim === undefined ? undefined : this.#elsewhere.get(claim)
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const { link, queues, bells } = this.#shared
    link.assertOpen()
    const partitions = queues.known(request.queue) ?? (await queues.look(request.queue))
    const [only] = partitions
    const claimed =
      partitions.length === 1 && only !== undefined
        ? await this.#from(only, request, request.limit)
        : await this.#fromAll(partitions, request)
    if (claimed.jobs.length > 0) bells.room(request.queue)
    return claimed
  }

  async #from(
    partition: Partition,
    { worker, lease, quiet = false }: ClaimRequest,
    limit: number,
  ): Promise<ClaimReply> {
    const ask = async (most: number) => {
      this.#call = (this.#call + 1) >>> 0
      const { now, run } = this.#shared
      const given = { limit: most, lease, worker, quiet }
      const { bytes, againAt } = claimInput(now(), partition, given, this.#call, run.id)
      return claimReply(await this.#shared.link.call('claim', partition, bytes, { againAt }))
    }
    let reply = await ask(limit)
    while (limit > 0 && reply.more) {
      let next: ClaimReply
      try {
        next = await ask(limit - reply.jobs.length)
      } catch (error) {
        // What was given before is the worker's: were it dropped here, it would run nowhere until its lease ends.
        if (reply.jobs.length === 0) throw error
        return { ...reply, more: false }
      }
      reply = { ...next, jobs: [...reply.jobs, ...next.jobs] }
    }
    return reply
  }

  /** Rejects only where nothing was given: what some partitions gave is not dropped because others cannot be reached. */
  async #fromAll(partitions: readonly Partition[], request: ClaimRequest): Promise<Claimed> {
    const turn = this.#turn++ % partitions.length
    let asked = [...partitions.slice(turn), ...partitions.slice(0, turn)]
    let shares = [request.limit]
    let now = 0
    const jobs: ClaimedJob[] = []
    let trouble: Trouble | undefined
    for (;;) {
      const { replies, failure } = await settled(
        shares.map(async (share, i) => {
          const partition = asked[i]
          return partition && this.#from(partition, request, share)
        }),
      )
      trouble ??= failure
      for (const [i, reply] of replies.entries()) {
        if (reply === undefined) continue
        now = Math.max(now, reply.now)
        for (const job of reply.jobs) {
          if (job.key !== null) this.#elsewhere.set(job, asked[i]?.index ?? 0)
          jobs.push(job)
        }
      }
      const left = request.limit - jobs.length
      // One that gave all that it was asked for may have more.
      asked = [
        ...asked.slice(shares.length),
        ...asked.filter((_, i) => replies[i] !== undefined && replies[i].jobs.length === shares[i]),
      ]
      if (left > 0 && left < asked.length) {
        // Asked for nothing, each tells whether there is anything: fewer round trips than asking one after the other.
        const looks = await settled(asked.map((partition) => this.#from(partition, request, 0)))
        trouble ??= looks.failure
        asked = asked.filter((_, i) => looks.replies[i]?.more)
      }
      if (left <= 0 || asked.length === 0) break
      shares = sharesOf(left, asked.length)
    }
    if (jobs.length === 0 && trouble !== undefined) throw trouble.reason
    // By time among equals: places are each partition's own.
    jobs.sort((a, b) => b.priority - a.priority || a.pushedAt - b.pushedAt)
    return { now, jobs }
  }
}

/** A number in equal whole parts, as many as there are to be, none of them 0. */
function sharesOf(total: number, parts: number): number[] {
  const count = Math.min(total, parts)
  return Array.from({ length: count }, (_, i) => Math.floor(total / count) + (i < total % count ? 1 : 0))
}
