/**
 * Pushes to queues opened with `whenFull: 'wait'`. Each queue has a wait list, first come, first served: a push joins its end, and only
 * its head is ever tried. So no push is overtaken, and freed capacity goes to the longest waiter.
 *
 *   idle ──push──► trying ──all stored──► idle
 *                  │    ▲
 *                  full └─ a bell, or POLL_INTERVAL ── blocked
 *
 * Pushes that come while a try is under way wait for the next one.
 */

import { atEndOfTick } from '../batch/batcher.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import type { Pusher } from './push/pusher.ts'
import { batches, MAX_PUSH } from './push/pusher.ts'

/** Milliseconds. */
const POLL_INTERVAL = DEFAULTS.producer.poll
/** Jobs tried at first when there may be capacity again; twice as many as long as all are stored. */
const FIRST_TRY = DEFAULTS.producer.firstTry

interface Waiter extends PromiseWithResolvers<PushOutcome> {
  job: NewJob
  call: object | undefined
  /** `onFull` was called for it. */
  reported: boolean
}

interface WaitList {
  waiters: Waiter[]
  trying: boolean
  /** A bell came since the try under way began. */
  rung: boolean
}

export class CapacityWaiters {
  readonly #pusher: Pusher
  readonly #lists = new Map<string, WaitList>()
  readonly #listen: () => void
  readonly #onFull: (queue: string) => void
  #listening = false
  /** Not unref'd: a caller waits to push. */
  #poll: NodeJS.Timeout | undefined
  #closed = false
  #idle: (() => void)[] = []

  /**
   * @param listen asks for bells, from now until the pond closes
   * @param onFull called once for each push that has to wait
   */
  constructor(pusher: Pusher, listen: () => void, onFull: (queue: string) => void) {
    this.#pusher = pusher
    this.#listen = listen
    this.#onFull = onFull
  }

  /** Some queue will wait for capacity. */
  listen(): void {
    if (this.#listening) return
    this.#listening = true
    this.#listen()
  }

  /**
   * Resolves once it is stored, never to `full`.
   * @param call the same for all jobs of one call: once one of them has failed, none after it is stored
   * @throws Closed once it would have to wait, and the store's own
   */
  push(job: NewJob, call?: object): Promise<PushOutcome> {
    const { queue } = job
    const list = this.#lists.get(queue) ?? { waiters: [], trying: false, rung: false }
    this.#lists.set(queue, list)
    const waiter: Waiter = { job, call, reported: false, ...Promise.withResolvers<PushOutcome>() }
    list.waiters.push(waiter)
    // A list that is not being tried and is not empty is blocked.
    if (!list.trying && list.waiters.length === 1) this.#try(queue, list, MAX_PUSH.items)
    else if (!list.trying) this.#report(queue, waiter)
    return waiter.promise
  }

  /** A bell: the queue may have capacity. */
  rung(queue: string): void {
    const list = this.#lists.get(queue)
    if (list === undefined) return
    list.rung = true
    if (!list.trying) this.#try(queue, list, FIRST_TRY)
  }

  /** Rejects blocked pushes with `Closed`. Resolves when the tries under way are over. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#poll)
    for (const [queue, list] of this.#lists) if (!list.trying) this.#remove(queue, list)
    if (this.#lists.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #try(queue: string, list: WaitList, most: number): void {
    list.trying = true
    atEndOfTick(() => void this.#tryNow(queue, list, most))
  }

  async #tryNow(queue: string, list: WaitList, most: number): Promise<void> {
    const head = headOf(list.waiters, most)
    list.rung = false
    let next = most * 2
    try {
      const outcomes = (await Promise.all(this.#pusher.pushMany(head.map(({ job }) => job)))).flat()
      const full = head.filter((_, index) => (outcomes[index]?.status ?? 'full') === 'full')
      for (const [index, { resolve }] of head.entries()) {
        const outcome = outcomes[index]
        if (outcome !== undefined && outcome.status !== 'full') resolve(outcome)
      }
      list.waiters.splice(0, head.length, ...full)
      if (full.length > 0 && !list.rung) {
        this.#block(queue, list)
        return
      }
      if (full.length > 0) next = FIRST_TRY
    } catch (error) {
      const failed = new Set<object | undefined>([...head, ...head.map(({ call }) => call)])
      failed.delete(undefined)
      list.waiters = list.waiters.filter((waiter) => {
        if (!failed.has(waiter) && !failed.has(waiter.call)) return true
        waiter.reject(error)
        return false
      })
      next = most
    }
    if (list.waiters.length > 0) this.#try(queue, list, next)
    else this.#remove(queue, list)
  }

  #block(queue: string, list: WaitList): void {
    list.trying = false
    if (this.#closed) {
      this.#remove(queue, list)
      return
    }
    for (const waiter of list.waiters) this.#report(queue, waiter)
    this.#poll ??= setInterval(() => {
      for (const name of [...this.#lists.keys()]) this.rung(name)
    }, POLL_INTERVAL)
  }

  #report(queue: string, waiter: Waiter): void {
    if (!waiter.reported) this.#onFull(queue)
    waiter.reported = true
  }

  /** Pushes still in the list reject. */
  #remove(queue: string, list: WaitList): void {
    this.#lists.delete(queue)
    for (const { reject } of list.waiters) reject(closed())
    if (this.#lists.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

/** As many from the first as one call carries. */
function headOf(waiters: readonly Waiter[], most: number): Waiter[] {
  const jobs = waiters.slice(0, Math.min(most, MAX_PUSH.items)).map(({ job }) => job)
  const [batch = []] = batches(jobs)
  return waiters.slice(0, batch.length)
}

function closed(): MillpondError {
  return new MillpondError('Closed', 'the pond was closed while a push waited for room; the job was not stored')
}
