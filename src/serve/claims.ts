/**
 * Claims for workers that ask over HTTP, and wait where there is nothing to do.
 *
 * Workers that wait for a queue stand in a line. A bell, or the poll that makes up for a missed one, makes the first of the line ask the store.
 * If that got something the next two ask, then four, and so on: a hundred who wait cost one call where one job came. What one
 * finds empty is empty for all, so those who do not wait are answered then.
 */
import type { Claimed, ClaimedJob, ClaimRequest, Store } from '../store.ts'

/** A missed bell delays a job by this much at the most, in milliseconds. */
const POLL = 1000
/** Most claims under way at once for a queue. */
const MAX_CLAIMS = 16
/** Jobs asked for in a call, and bytes after which no more are: the answer is put together in memory. */
const MAX_JOBS_PER_CALL = 10
const MAX_BYTES = 4 * 1024 * 1024

interface Waiter extends PromiseWithResolvers<Claimed> {
  request: ClaimRequest
  /** It is answered as soon as a claim that began after it came found nothing. */
  impatient: boolean
  asking: boolean
}

/** Who waits for a queue, in the order in which they came. */
interface Line {
  waiters: Set<Waiter>
  serving: boolean
  /** There may be jobs that nobody has asked for. */
  again: boolean
}

export class Claims {
  readonly #store: Store
  readonly #lines = new Map<string, Line>()
  readonly #underWay = new Set<Promise<unknown>>()
  #unlisten: (() => void) | undefined
  #poll: NodeJS.Timeout | undefined
  #stopping = false

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * At most `limit` jobs; none if there were none for so long.
   * @param wait in milliseconds
   * @param signal while this is under way: the worker is gone, and what was claimed for it is given back
   * @throws `Store…`
   */
  claim(request: ClaimRequest, wait: number, signal: AbortSignal): Promise<Claimed> {
    return this.#track(this.#claim(request, wait, signal))
  }

  async #claim(request: ClaimRequest, wait: number, signal: AbortSignal): Promise<Claimed> {
    if (signal.aborted) return nothing(request)
    const { queue } = request
    const impatient = wait === 0 || this.#stopping
    const waiter: Waiter = { request, impatient, asking: false, ...Promise.withResolvers<Claimed>() }
    const line = this.#join(queue, waiter)
    const dismiss = () => this.#dismiss(queue, line, waiter)
    const timer = impatient ? undefined : setTimeout(dismiss, wait)
    signal.addEventListener('abort', dismiss)
    this.#serve(queue, line)
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

  /** As if they had never been claimed. Never rejects: if even this fails, the leases run out. */
  async giveBack(queue: string, jobs: readonly ClaimedJob[]): Promise<void> {
    if (jobs.length === 0) return
    const holds = jobs.map((claim) => ({ id: claim.id, fence: claim.fence, claim }))
    await this.#track(this.#store.release(queue, holds)).catch(() => {})
  }

  /** Resolves when the claims that are under way now have their answer, and what is being given back is back. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const over = () => void this.#underWay.delete(work)
    this.#underWay.add(work)
    work.then(over, over)
    return work
  }

  /** How many wait. */
  get waiting(): number {
    let count = 0
    for (const { waiters } of this.#lines.values()) count += waiters.size
    return count
  }

  /** From now on nobody waits. */
  stop(): void {
    this.#stopping = true
    for (const [queue, line] of this.#lines) for (const waiter of line.waiters) this.#dismiss(queue, line, waiter)
  }

  #join(queue: string, waiter: Waiter): Line {
    const line = this.#lines.get(queue) ?? { waiters: new Set(), serving: false, again: false }
    line.waiters.add(waiter)
    this.#lines.set(queue, line)
    if (this.#poll === undefined) {
      this.#unlisten = this.#store.listen((bell) => {
        const rung = bell.kind === 'work' ? this.#lines.get(bell.queue) : undefined
        if (rung !== undefined) this.#serve(bell.queue, rung)
      })
      this.#poll = setInterval(() => {
        for (const [name, each] of this.#lines) this.#serve(name, each)
      }, POLL)
    }
    return line
  }

  #leave(queue: string, line: Line, waiter: Waiter): void {
    line.waiters.delete(waiter)
    if (!line.serving) this.#removeIfEmpty(queue, line)
  }

  #removeIfEmpty(queue: string, line: Line): void {
    if (line.waiters.size > 0) return
    this.#lines.delete(queue)
    if (this.#lines.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
    this.#unlisten?.()
  }

  /** One that is asking gets what it asked for. */
  #dismiss(queue: string, line: Line, waiter: Waiter): void {
    waiter.impatient = true
    if (waiter.asking || !line.waiters.has(waiter)) return
    waiter.resolve(nothing(waiter.request))
    this.#leave(queue, line, waiter)
  }

  #serve(queue: string, line: Line): void {
    line.again = true
    if (line.serving) return
    line.serving = true
    void this.#serveAll(queue, line)
  }

  /** Never rejects. */
  async #serveAll(queue: string, line: Line): Promise<void> {
    let size = 1
    while (line.again && line.waiters.size > 0) {
      line.again = false
      const present = [...line.waiters]
      const got = await Promise.all(present.slice(0, size).map((waiter) => this.#ask(queue, line, waiter)))
      if (got.every((one) => one)) {
        line.again = true
        size = Math.min(size * 2, MAX_CLAIMS)
      } else {
        size = 1
        // Not those who came meanwhile: nobody has asked since.
        for (const waiter of present) if (waiter.impatient) this.#dismiss(queue, line, waiter)
      }
    }
    // In the same turn as the last look at the line: whoever joins from now on is served anew.
    line.serving = false
    this.#removeIfEmpty(queue, line)
  }

  /** Whether it got something, be it an error. Never rejects. */
  async #ask(queue: string, line: Line, waiter: Waiter): Promise<boolean> {
    waiter.asking = true
    try {
      const claimed = await this.#take(waiter.request)
      if (claimed.jobs.length === 0) return false
      waiter.resolve(claimed)
    } catch (error) {
      waiter.reject(error)
    } finally {
      waiter.asking = false
    }
    this.#leave(queue, line, waiter)
    return true
  }

  async #take(request: ClaimRequest): Promise<Claimed> {
    const jobs: ClaimedJob[] = []
    let bytes = 0
    let claimed: Claimed | undefined
    for (;;) {
      const limit = Math.min(MAX_JOBS_PER_CALL, request.limit - jobs.length)
      try {
        claimed = await this.#store.claim({ ...request, limit })
      } catch (error) {
        // What is claimed already is told; whoever asks again gets the error.
        if (claimed !== undefined) return { ...claimed, jobs }
        throw error
      }
      jobs.push(...claimed.jobs)
      bytes += claimed.jobs.reduce((sum, { data }) => sum + data.body.length, 0)
      if (claimed.jobs.length < limit || jobs.length === request.limit || bytes > MAX_BYTES) return { ...claimed, jobs }
    }
  }
}

/** The answer to one that gets nothing; nobody looks at its times. */
function nothing({ lease }: ClaimRequest): Claimed {
  return { now: Date.now(), lease: lease ?? 0, jobs: [], retryAfter: null }
}
