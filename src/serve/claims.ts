/**
 * Claims for workers over HTTP, which wait if there is no job.
 *
 * The workers that wait for a queue stand in a wait list. A bell, or the poll that makes up for a missed one, makes
 * the first of them ask the store. If it gets jobs, the next two ask, then four, and so on: with a hundred waiting
 * workers, one job costs one call. If one gets nothing there is nothing for all, so the workers that do not wait are
 * answered then. Workers that ask for urgent jobs only (`minPriority`) stand in lists of their own.
 */

import type { Store } from '../store.ts'
import type { Claimed, ClaimedJob, ClaimRequest } from '../values/jobs/records.ts'
import { SHORTEST_RETRY_AFTER } from '../worker/claim-loop.ts'
import type { WorkerRegistry } from '../worker/registry.ts'

/** Milliseconds. A missed bell delays a job by this much at most. */
const POLL_INTERVAL = 1000
const PRIORITIES = 10
/** Most claims under way at once for a wait list. */
const MAX_CLAIMS = 16
/**
 * Jobs asked for in a call, and bytes after which no more are: the answer is built in memory. After a call that failed
 * it is one job, and twice as many with each answer: together they may be too much to be delivered.
 */
const MAX_JOBS_PER_CALL = 10
const MAX_BYTES = 4 * 1024 * 1024
/** Jobs beyond so many bytes are given back: as JSON an answer may be several times as large, and no text can be longer than 512 MiB. */
const MAX_ANSWER = 64 * 1024 * 1024
/** Most wait lists whose failure is remembered once no worker waits in them. */
const MAX_REMEMBERED = 1000

interface Waiter extends PromiseWithResolvers<Claimed> {
  request: ClaimRequest
  /** It is answered as soon as a claim that began after it came finds nothing. */
  impatient: boolean
  asking: boolean
}

export class Claims {
  readonly #store: Store
  readonly #registry: WorkerRegistry
  readonly #due: (ms: number) => void
  readonly #lists = new Map<string, WaitList>()
  /** Jobs asked for in the next call, of wait lists that have gone after a call that failed. */
  readonly #most = new Map<string, number>()
  readonly #underWay = new Set<Promise<unknown>>()
  #unlisten: (() => void) | undefined
  #poll: NodeJS.Timeout | undefined
  #stopping = false

  /** @param due a claim that found nothing may find something in so many milliseconds, if a sweep comes first */
  constructor(store: Store, registry: WorkerRegistry, due: (ms: number) => void) {
    this.#store = store
    this.#registry = registry
    this.#due = due
  }

  get waiting(): number {
    return [...this.#lists.values()].reduce((sum, { waiters }) => sum + waiters.size, 0)
  }

  /**
   * At most `limit` jobs; none if there were none for `wait` milliseconds.
   * @param signal aborted while this is under way: the worker is gone, and its jobs are given back
   * @throws `Store…`
   */
  claim(request: ClaimRequest, wait: number, signal: AbortSignal): Promise<Claimed> {
    return this.#track(this.#claim(request, wait, signal))
  }

  async #claim(request: ClaimRequest, wait: number, signal: AbortSignal): Promise<Claimed> {
    if (signal.aborted) return nothing(request)
    const { queue, worker, limit } = request
    this.#registry.claimed(worker, queue, limit)
    const impatient = wait === 0 || this.#stopping
    const waiter: Waiter = { request, impatient, asking: false, ...Promise.withResolvers<Claimed>() }
    const list = this.#listOf(request)
    const dismiss = () => list.dismiss(waiter)
    const timer = impatient ? undefined : setTimeout(dismiss, wait)
    signal.addEventListener('abort', dismiss)
    list.waiters.add(waiter)
    list.serve()
    try {
      const claimed = await waiter.promise
      if (!signal.aborted) return claimed
      await this.giveBack(queue, claimed.jobs)
      return { ...claimed, jobs: [] }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', dismiss)
    }
  }

  /** Releases the jobs as if they had never been claimed. Never rejects: if it fails, the leases expire. */
  async giveBack(queue: string, jobs: readonly ClaimedJob[]): Promise<void> {
    if (jobs.length === 0) return
    const holds = jobs.map((claim) => ({ id: claim.id, fence: claim.fence, claim }))
    await this.#track(this.#store.operations.release({ queue, items: holds })).catch(() => {})
  }

  /** Resolves when all claims now under way are answered, and jobs now being given back are back. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  /** From now on no claim waits. */
  stop(): void {
    this.#stopping = true
    for (const list of this.#lists.values()) for (const waiter of list.waiters) list.dismiss(waiter)
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const over = () => void this.#underWay.delete(work)
    this.#underWay.add(work)
    work.then(over, over)
    return work
  }

  #listOf(request: ClaimRequest): WaitList {
    const name = nameOf(request.queue, request.minPriority)
    const giveBack = (jobs: readonly ClaimedJob[]) => this.giveBack(request.queue, jobs)
    const host = { store: this.#store, due: this.#due, giveBack, onEmpty: () => this.#remove(name) }
    const list = this.#lists.get(name) ?? new WaitList(host, this.#most.get(name))
    this.#lists.set(name, list)
    this.#poll ??= setInterval(() => {
      for (const each of this.#lists.values()) each.serve()
    }, POLL_INTERVAL)
    this.#unlisten ??= this.#store.listen((bell) => {
      if (bell.kind !== 'work') return
      for (let least = 0; least < PRIORITIES; least++) this.#lists.get(nameOf(bell.queue, least))?.serve()
    })
    return list
  }

  #remove(name: string): void {
    const most = this.#lists.get(name)?.most ?? MAX_JOBS_PER_CALL
    if (most === MAX_JOBS_PER_CALL || this.#most.size === MAX_REMEMBERED) this.#most.delete(name)
    else this.#most.set(name, most)
    this.#lists.delete(name)
    if (this.#lists.size > 0) return
    clearInterval(this.#poll)
    this.#unlisten?.()
    this.#poll = this.#unlisten = undefined
  }
}

/** The key of a `WaitList`. */
const nameOf = (queue: string, minPriority = 0) => `${minPriority} ${queue}`

interface WaitListHost {
  store: Store
  due: (ms: number) => void
  giveBack: (jobs: readonly ClaimedJob[]) => Promise<void>
  onEmpty: () => void
}

/** The workers that wait for jobs of one queue from one priority on, in the order in which they came. */
class WaitList {
  readonly waiters = new Set<Waiter>()
  readonly #store: Store
  readonly #due: (ms: number) => void
  readonly #giveBack: (jobs: readonly ClaimedJob[]) => Promise<void>
  readonly #onEmpty: () => void
  #serving = false
  /** There may be jobs that no worker has asked for. */
  #again = false
  /** Jobs asked for in the next call. */
  most: number
  #retry: NodeJS.Timeout | undefined

  constructor({ store, due, giveBack, onEmpty }: WaitListHost, most = MAX_JOBS_PER_CALL) {
    this.most = most
    this.#store = store
    this.#due = due
    this.#giveBack = giveBack
    this.#onEmpty = onEmpty
  }

  /** Answers a waiter with no jobs; one that is asking gets what it asked for. */
  dismiss(waiter: Waiter): void {
    waiter.impatient = true
    if (waiter.asking || !this.waiters.has(waiter)) return
    waiter.resolve(nothing(waiter.request))
    this.#leave(waiter)
  }

  #leave(waiter: Waiter): void {
    this.waiters.delete(waiter)
    if (!this.#serving && this.waiters.size === 0) this.#onEmpty()
  }

  /** Asks the store for the waiters. */
  serve(): void {
    this.#again = true
    if (!this.#serving) void this.#serveAll()
  }

  /** Never rejects. */
  async #serveAll(): Promise<void> {
    this.#serving = true
    let size = 1
    while (this.#again && this.waiters.size > 0) {
      this.#again = false
      const present = [...this.waiters]
      const got = await Promise.all(present.slice(0, size).map((waiter) => this.#ask(waiter)))
      if (got.every((one) => one)) {
        this.#again = true
        size = Math.min(size * 2, MAX_CLAIMS)
      } else {
        size = 1
        // Not waiters that came meanwhile: there may be jobs since.
        for (const waiter of present) if (waiter.impatient) this.dismiss(waiter)
      }
    }
    // In the same tick as the last check of the list, so that the next waiter is served again.
    this.#serving = false
    if (this.waiters.size === 0) this.#onEmpty()
  }

  /** Whether the waiter was answered, be it with an error. Never rejects. */
  async #ask(waiter: Waiter): Promise<boolean> {
    waiter.asking = true
    try {
      const claimed = await this.#take(waiter.request)
      if (claimed.jobs.length === 0) {
        this.#serveAfter(claimed.retryAfter)
        return false
      }
      waiter.resolve(claimed)
    } catch (error) {
      waiter.reject(error)
    } finally {
      waiter.asking = false
    }
    this.#leave(waiter)
    return true
  }

  /** The poll serves what is further away. */
  #serveAfter(ms: number | null): void {
    clearTimeout(this.#retry)
    if (ms === null || ms >= POLL_INTERVAL) return
    this.#due(ms)
    const serve = () => this.waiters.size > 0 && this.serve()
    this.#retry = setTimeout(serve, Math.max(ms, SHORTEST_RETRY_AFTER)).unref()
  }

  async #take(request: ClaimRequest): Promise<Claimed> {
    const jobs: ClaimedJob[] = []
    let bytes = 0
    let claimed: Claimed | undefined
    for (;;) {
      const limit = Math.min(this.most, request.limit - jobs.length)
      try {
        claimed = await this.#store.operations.claim({ ...request, limit })
        this.most = Math.min(this.most * 2, MAX_JOBS_PER_CALL)
      } catch (error) {
        this.most = 1
        // The worker gets the jobs claimed so far; its next claim gets the error.
        if (claimed !== undefined) return { ...claimed, jobs }
        throw error
      }
      const over: ClaimedJob[] = []
      for (const job of claimed.jobs) {
        bytes += job.data.body.length
        if (jobs.length === 0 || bytes <= MAX_ANSWER) jobs.push(job)
        else over.push(job)
      }
      await this.#giveBack(over)
      if (claimed.jobs.length < limit || jobs.length === request.limit || bytes > MAX_BYTES) return { ...claimed, jobs }
    }
  }
}

/** The answer without jobs; the rest of it is not read. */
function nothing({ lease }: ClaimRequest): Claimed {
  return { now: Date.now(), lease: lease ?? 0, jobs: [], retryAfter: null, limited: false }
}
