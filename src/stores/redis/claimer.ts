/**
 * Claims, over all partitions of a queue. One partition is asked for everything, each time the next one; where it comes short, the others
 * share what is missing. So order holds within a partition, and over all of them about: a claim that is smaller than the backlog of its
 * first partition sees no other.
 *
 * A claim whose answer is missing may have taken effect. What it got is asked for and released, before the same worker claims there again and
 * once a second: its jobs would be lost to a worker that never heard of them, and each would lose an attempt.
 */
import { randomUUID } from 'node:crypto'
import { isMillpondError } from '../../errors.ts'
import type { Claimed, ClaimedJob, ClaimRequest } from '../../store.ts'
import type { Configured } from './configure.ts'
import { toMillpondError } from './errors.ts'
import { idBytes } from './ids.ts'
import type { Partition } from './partition.ts'
import { type ClaimReply, claimReply } from './replies.ts'
import { settled, type Trouble } from './settled.ts'
import type { Shared } from './shared.ts'

/** A claim that may have taken effect. */
interface Doubt {
  partition: Partition
  worker: string
  call: string
}

/** Milliseconds between two tries to settle a doubt. */
const PAUSE = 1000

export class Claimer {
  readonly #shared: Shared
  readonly #configured: Configured
  readonly #timeout: number
  /** Of jobs that are not where their id says, because they have a key. */
  readonly #elsewhere = new WeakMap<ClaimedJob, number>()
  #turn = 0
  /** Names each call, for when its answer is lost. */
  readonly #calls = randomUUID().slice(0, 8)
  #call = 0
  /** The server's time minus `performance.now()`, at least; undefined: not known, or the time is a test's. */
  #ahead: number | undefined
  readonly #doubts = new Map<string, Doubt>()
  #timer: NodeJS.Timeout | undefined

  /** @param timeout milliseconds after which nobody waits for a claim's answer */
  constructor(shared: Shared, configured: Configured, timeout: number) {
    this.#shared = shared
    this.#configured = configured
    this.#timeout = timeout
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
    const { now, lease, jobs, retryAfter } =
      partitions.length === 1 && only !== undefined
        ? await this.#from(only, request, request.limit)
        : await this.#fromAll(partitions, request)
    if (jobs.length > 0) bells.ring('room', request.queue)
    return { now, lease, jobs, retryAfter: jobs.length < request.limit ? retryAfter : null }
  }

  /** What is in doubt is released, as far as the server can be reached. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    if (this.#doubts.size === 0 || this.#shared.link.client.status !== 'ready') return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, PAUSE)
    })
    await Promise.race([settled([...this.#doubts.values()].map((doubt) => this.#settle(doubt))), late])
    clearTimeout(timer)
  }

  async #from(partition: Partition, request: ClaimRequest, limit: number): Promise<ClaimReply> {
    let reply = await this.#ask(partition, request, limit)
    while (limit > 0 && reply.more) {
      let next: ClaimReply
      try {
        next = await this.#ask(partition, request, limit - reply.jobs.length)
      } catch (error) {
        // What was given before is the worker's: were it dropped here, it would run nowhere until its lease ends.
        if (reply.jobs.length === 0) throw error
        return { ...reply, more: false }
      }
      reply = { ...next, jobs: [...reply.jobs, ...next.jobs] }
    }
    return reply
  }

  async #ask(partition: Partition, { queue, worker, lease }: ClaimRequest, limit: number): Promise<ClaimReply> {
    const doubt = this.#doubts.get(doubtKey(partition, worker))
    if (doubt !== undefined) await this.#settle(doubt)
    // A server whose time is not what we took it for tells so, once.
    for (let tries = 0; tries < 2; tries++) {
      const call = `${this.#calls}-${++this.#call}`
      const latest = this.#ahead === undefined ? null : Math.floor(this.#ahead + performance.now() + this.#timeout)
      let answer: readonly unknown[]
      try {
        const late = (reply: readonly unknown[]) => void this.#releaseLate({ partition, worker, call }, reply)
        answer = await this.#shared.ask('claim', partition, [limit, lease, worker, call, latest], [], { late })
      } catch (error) {
        if (limit > 0 && !isMillpondError(error, 'Closed')) this.#inDoubt({ partition, worker, call })
        throw error
      }
      const reply = claimReply(answer)
      if (this.#shared.now() === null) this.#ahead = reply.now - performance.now()
      if (!reply.known) this.#configured.lost(queue)
      if (!reply.late) return reply
    }
    throw toMillpondError(new Error('Connection is closed.'), 'a claim came too late')
  }

  #inDoubt(doubt: Doubt): void {
    this.#doubts.set(doubtKey(doubt.partition, doubt.worker), doubt)
    this.#tryLater()
  }

  #tryLater(): void {
    if (this.#doubts.size === 0 || this.#shared.link.closed) return
    this.#timer ??= setTimeout(async () => {
      this.#timer = undefined
      await settled([...this.#doubts.values()].map((doubt) => this.#settle(doubt)))
      this.#tryLater()
    }, PAUSE).unref()
  }

  async #releaseLate(doubt: Doubt, answer: readonly unknown[]): Promise<void> {
    const { replies } = await settled([this.#release(doubt.partition, claimReply(answer))])
    if (replies[0] !== undefined) this.#forget(doubt)
  }

  /** Asks what a call got, and releases it. */
  async #settle(doubt: Doubt): Promise<void> {
    const { partition, worker, call } = doubt
    const answer = await this.#shared.ask('claim', partition, [0, null, worker, call, null], [], { again: true })
    await this.#release(partition, claimReply(answer))
    this.#forget(doubt)
  }

  #forget(doubt: Doubt): void {
    const key = doubtKey(doubt.partition, doubt.worker)
    if (this.#doubts.get(key) === doubt) this.#doubts.delete(key)
  }

  async #release(partition: Partition, { jobs }: ClaimReply): Promise<boolean> {
    if (jobs.length === 0) return true
    await this.#shared.ask(
      'release',
      partition,
      [],
      jobs.flatMap(({ id, fence }) => [idBytes(id), fence]),
      { again: true },
    )
    this.#shared.bells.ring('work', partition.queue)
    return true
  }

  /** Rejects only where nothing was given: what some partitions gave is not dropped because others cannot be reached. */
  async #fromAll(partitions: readonly Partition[], request: ClaimRequest): Promise<Claimed> {
    const turn = this.#turn++ % partitions.length
    let asked = [...partitions.slice(turn), ...partitions.slice(0, turn)]
    let shares = [request.limit]
    let now = 0
    let lease = Number.POSITIVE_INFINITY
    let retryAfter: number | null = null
    const jobs: ClaimedJob[] = []
    let trouble: Trouble | undefined
    const heard = (reply: ClaimReply): void => {
      now = Math.max(now, reply.now)
      lease = Math.min(lease, reply.lease)
      if (reply.retryAfter !== null) retryAfter = Math.min(retryAfter ?? reply.retryAfter, reply.retryAfter)
    }
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
        heard(reply)
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
        for (const reply of looks.replies) if (reply !== undefined) heard(reply)
        asked = asked.filter((_, i) => looks.replies[i]?.more)
      }
      if (left <= 0 || asked.length === 0) break
      shares = sharesOf(left, asked.length)
    }
    if (jobs.length === 0 && trouble !== undefined) throw trouble.reason
    // By time among equals: places are each partition's own.
    jobs.sort((a, b) => b.priority - a.priority || a.pushedAt - b.pushedAt)
    return { now, lease, jobs, retryAfter }
  }
}

const doubtKey = ({ tag, part }: Partition, worker: string): string => `${tag} ${part} ${worker}`

/** A number in equal whole parts, as many as there are to be, none of them 0. */
function sharesOf(total: number, parts: number): number[] {
  const count = Math.min(total, parts)
  return Array.from({ length: count }, (_, i) => Math.floor(total / count) + (i < total % count ? 1 : 0))
}
