/**
 * Claims for workers that ask over HTTP, and wait where there is nothing to do.
 *
 * Those who wait for a queue stand in a line. A bell, or the second that may have hidden one, makes the first of the line ask the store; where
 * that got something the next two ask, then four, and so on: a hundred who wait cost one call where one job came. What one asks
 * and finds empty is empty for all, so those who do not wait are sent away then. Nothing here walks the line for each who comes or leaves.
 */
import type { Claimed, ClaimedJob, ClaimRequest, Store } from '../store.ts'

/** A missed bell delays a job by this much at the most, in milliseconds. */
const POLL = 1000
/** Most claims under way at once for a queue. */
const WAVE = 16
/** Jobs asked for in a call, and bytes after which no more are: the answer is put together in memory. */
const BITE = 10
const BYTES = 4 * 1024 * 1024

interface Waiter {
  request: ClaimRequest
  resolve: (claimed: Claimed) => void
  reject: (error: unknown) => void
  /** Greater than that of everyone before it in the line. */
  number: number
  asking: boolean
  gone: boolean
}

interface Line {
  /** In the order in which they came. */
  waiters: Set<Waiter>
  /** Of these, those who are sent away as soon as there is nothing for them. */
  impatient: Set<Waiter>
  serving: boolean
  again: boolean
}

export class Claims {
  readonly #store: Store
  readonly #lines = new Map<string, Line>()
  readonly #underWay = new Set<Promise<unknown>>()
  #unlisten: (() => void) | undefined
  #poll: NodeJS.Timeout | undefined
  #numbers = 0
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
    const { promise, resolve, reject } = Promise.withResolvers<Claimed>()
    const impatient = wait === 0 || this.#stopping
    const waiter: Waiter = { request, resolve, reject, number: this.#numbers++, asking: false, gone: false }
    const line = this.#join(request.queue, waiter)
    if (impatient) line.impatient.add(waiter)
    const timer = impatient ? undefined : setTimeout(() => this.#dismiss(request.queue, waiter), wait)
    const hangUp = () => {
      waiter.gone = true
      this.#dismiss(request.queue, waiter)
    }
    signal.addEventListener('abort', hangUp)
    this.#serve(request.queue, line)
    try {
      const claimed = await promise
      if (waiter.gone) await this.giveBack(request.queue, claimed.jobs)
      return waiter.gone ? { ...claimed, jobs: [] } : claimed
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', hangUp)
    }
  }

  /** As if they had never been claimed. Never rejects: if even this fails, the leases run out. */
  async giveBack(queue: string, jobs: readonly ClaimedJob[]): Promise<void> {
    if (jobs.length === 0) return
    const holds = jobs.map((claim) => ({ id: claim.id, fence: claim.fence, claim }))
    await this.#track(this.#store.release(queue, holds)).catch(() => {})
  }

  /** Resolves when the claims that are under way now have their answer, and what is being given back is back. */
  async settled(): Promise<void> {
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
    for (const [queue, { waiters }] of this.#lines) for (const waiter of waiters) this.#dismiss(queue, waiter)
  }

  #join(queue: string, waiter: Waiter): Line {
    const line = this.#lines.get(queue) ?? { waiters: new Set(), impatient: new Set(), serving: false, again: false }
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

  #leave(queue: string, waiter: Waiter): void {
    const line = this.#lines.get(queue)
    if (!line?.waiters.delete(waiter)) return
    line.impatient.delete(waiter)
    this.#tidy(queue, line)
  }

  #tidy(queue: string, line: Line): void {
    if (line.waiters.size > 0 || line.serving) return
    this.#lines.delete(queue)
    if (this.#lines.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
    this.#unlisten?.()
  }

  /** One that is asking gets what it asked for. */
  #dismiss(queue: string, waiter: Waiter): void {
    const line = this.#lines.get(queue)
    if (!line?.waiters.has(waiter)) return
    line.impatient.add(waiter)
    if (waiter.asking) return
    waiter.resolve(nothing(waiter.request))
    this.#leave(queue, waiter)
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
      const present = this.#numbers
      const got = await Promise.all(firstOf(line.waiters, size).map((waiter) => this.#ask(queue, waiter)))
      if (got.every((one) => one)) {
        line.again = true
        size = Math.min(size * 2, WAVE)
      } else {
        size = 1
        // Not those who came meanwhile: nobody has asked since.
        for (const waiter of line.impatient) if (waiter.number < present) this.#dismiss(queue, waiter)
      }
    }
    // In the same turn as the last look at the line: whoever joins from now on is served anew.
    line.serving = false
    this.#tidy(queue, line)
  }

  /** Whether it got something, be it an error. Never rejects. */
  async #ask(queue: string, waiter: Waiter): Promise<boolean> {
    waiter.asking = true
    try {
      const claimed = await this.#take(waiter.request)
      waiter.asking = false
      if (claimed.jobs.length === 0) return false
      waiter.resolve(claimed)
    } catch (error) {
      waiter.asking = false
      waiter.reject(error)
    }
    this.#leave(queue, waiter)
    return true
  }

  async #take(request: ClaimRequest): Promise<Claimed> {
    const jobs: ClaimedJob[] = []
    let bytes = 0
    let claimed: Claimed | undefined
    for (;;) {
      const limit = Math.min(BITE, request.limit - jobs.length)
      try {
        claimed = await this.#store.claim({ ...request, limit })
      } catch (error) {
        // What is claimed already is told; whoever asks again gets the error.
        if (claimed !== undefined) return { ...claimed, jobs }
        throw error
      }
      jobs.push(...claimed.jobs)
      bytes += claimed.jobs.reduce((sum, { data }) => sum + data.body.length, 0)
      if (claimed.jobs.length < limit || jobs.length === request.limit || bytes > BYTES) return { ...claimed, jobs }
    }
  }
}

/** The answer to one that is sent away; nobody looks at its times. */
function nothing({ lease }: ClaimRequest): Claimed {
  return { now: Date.now(), lease: lease ?? 0, jobs: [], retryAfter: null }
}

function firstOf(waiters: ReadonlySet<Waiter>, count: number): Waiter[] {
  const first: Waiter[] = []
  for (const waiter of waiters) {
    if (first.length === count) break
    first.push(waiter)
  }
  return first
}
