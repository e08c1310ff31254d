/**
 * The one batcher (group commit). While a further call may be made, an item goes out at the end of its tick, with all other items of that
 * tick. While as many calls are under way as may be, items wait for one to end, and then go together. So grouping never adds latency,
 * unless `within` asks for it.
 */

import { type Linked, LinkedList } from '../values/collections/linked-list.ts'

/** It is in the list of waiting entries until it is sent or leaves. */
interface Entry<In, Out> extends Linked<Entry<In, Out>> {
  item: In
  bytes: number
  /** As how many items it counts. */
  size: number
  /** When it came, by `performance.now()`; 0 where nobody asks. */
  at: number
  resolve: (out: Out) => void
  reject: (error: unknown) => void
}

export interface BatcherLimits {
  /** Most items in a call. */
  items: number
  /** Most bytes in a call; a single larger item goes alone. */
  bytes: number
  /** Most calls under way at once. 1 unless given. */
  calls?: number
  /** How long, in ms, an item may wait for others to fill the call. 0 unless given: not at all. */
  within?: number
  /**
   * For a receiver that keeps the order of calls and works while the next call is prepared. One more call may be made while the others are
   * under way, once enough items wait. A large call goes in two halves, a tick of the event loop apart. Otherwise each side would wait
   * while the other works.
   */
  overlap?: boolean
  /**
   * For callers that come back one by one after an answer, as clients of a server do. A call for the first of them would keep the others
   * waiting. So a call with fewer items than the last one waits a few ticks of the event loop for more.
   */
  regroup?: boolean
  /**
   * Ms after which items go although all calls are under way: one that gets no answer must not use up the time of those
   * behind it. Never unless given.
   */
  patience?: number
}

/** Fewest items in a call beside another: for fewer it isn't worth what a call costs. */
const MIN_OVERLAPPING_ITEMS = 16
/**
 * How long a call waits for callers that were just answered. Each needs about a tick to come back. Where ticks are long, it may not come at
 * all.
 */
const MAX_REGROUPING_TICKS = 8
const MAX_REGROUPING_MS = 0.5

export class Batcher<In, Out> {
  readonly #send: (items: In[]) => Promise<readonly (Out | Error)[]>
  readonly #limits: Required<BatcherLimits>
  readonly #isRefusal: (out: Out | Error) => out is Error
  readonly #waiting = new LinkedList<Entry<In, Out>>()
  #waitingBytes = 0
  #waitingSize = 0
  #underWay = 0
  #planned = false
  /** How many items the last call carried; 0: nobody asks. */
  #last = 0
  #timer: NodeJS.Timeout | undefined
  #impatience: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []

  /**
   * @param send answers with one outcome an item, in their order: an Error rejects that item alone. Must not throw but by rejecting.
   * @param isRefusal tells errors; those of other realms are not known unless it is given
   */
  constructor(
    send: (items: In[]) => Promise<readonly (Out | Error)[]>,
    limits: BatcherLimits,
    isRefusal: (out: Out | Error) => out is Error = isOwnError,
  ) {
    this.#send = send
    this.#isRefusal = isRefusal
    const patience = Number.POSITIVE_INFINITY
    this.#limits = { calls: 1, within: 0, overlap: false, regroup: false, patience, ...limits }
  }

  get waiting(): number {
    return this.#waiting.size
  }

  get underWay(): number {
    return this.#underWay
  }

  /**
   * Settles with the item's own outcome, or with the error of the call that carried it.
   * @param signal rejects with its reason when it is aborted; an item whose call was not made yet is then not sent
   * @param size the number of items that this one counts as
   */
  add(item: In, bytes: number, signal?: AbortSignal, size = 1): Promise<Out> {
    return new Promise((resolve, reject) => {
      const at = this.#limits.within === 0 ? 0 : performance.now()
      const entry: Entry<In, Out> = { item, bytes, size, at, resolve, reject, prev: null, next: null, list: null }
      if (signal !== undefined) this.#leaveOn(signal, entry)
      this.#waiting.append(entry)
      this.#waitingBytes += bytes
      this.#waitingSize += size
      if (this.#planned) return
      if (this.#mayCall()) this.#plan()
      else this.#waitPatiently()
    })
  }

  /** Resolves when everything added so far is settled. */
  flushed(): Promise<void> {
    if (this.#underWay === 0 && this.waiting === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  #mayCall(): boolean {
    const { calls, overlap } = this.#limits
    if (this.#underWay < calls) return true
    return overlap && this.#underWay === calls && this.#waitingSize >= MIN_OVERLAPPING_ITEMS
  }

  #waitPatiently(): void {
    const { patience } = this.#limits
    if (!Number.isFinite(patience) || this.#impatience !== undefined) return
    this.#impatience = setTimeout(() => {
      this.#impatience = undefined
      if (this.waiting > 0 && !this.#planned) this.#planNow()
    }, patience)
  }

  /** Makes sure that the next call is made: at the end of this tick, or when `within` is over. */
  #plan(): void {
    if (this.#limits.within > 0 && !this.#full()) {
      if (this.#timer !== undefined) return
      const rest = (this.#waiting.first?.at ?? 0) + this.#limits.within - performance.now()
      if (rest > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = undefined
          if (!this.#planned && this.#mayCall()) this.#planNow()
        }, Math.ceil(rest))
        return
      }
    }
    this.#planNow()
  }

  #planNow(): void {
    this.#planned = true
    const until = performance.now() + MAX_REGROUPING_MS
    let ticks = MAX_REGROUPING_TICKS
    const look = () => {
      if (this.waiting === 0 || this.waiting >= this.#last || ticks-- === 0 || performance.now() > until) this.#write()
      else setImmediate(look)
    }
    atEndOfTick(look)
  }

  /** When what was just sent is on its way. */
  #planLater(): void {
    this.#planned = true
    setImmediate(() => this.#write())
  }

  #full(): boolean {
    return this.#waitingSize >= this.#limits.items || this.#waitingBytes >= this.#limits.bytes
  }

  #write(): void {
    this.#planned = false
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#call(this.#take())
    if (this.waiting > 0) {
      if (!this.#mayCall()) this.#waitPatiently()
      else if (this.#limits.overlap) this.#planLater()
      else this.#plan()
    }
    if (this.#underWay === 0 && this.waiting === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #call(batch: Entry<In, Out>[]): void {
    if (batch.length === 0) return
    if (this.#limits.regroup) this.#last = batch.length
    this.#underWay++
    this.#send(batch.map((entry) => entry.item)).then(
      (outs) => {
        this.#underWay--
        this.#settle(batch, outs)
        this.#next()
      },
      (error: unknown) => {
        this.#underWay--
        for (const entry of batch) entry.reject(error)
        this.#next()
      },
    )
  }

  #settle(batch: readonly Entry<In, Out>[], outs: readonly (Out | Error)[]): void {
    for (let index = 0; index < batch.length; index++) {
      const { resolve, reject } = batch[index] as Entry<In, Out>
      // Even what throws when it is read must leave no caller without an answer.
      try {
        const out = outs[index] as Out | Error
        if (this.#isRefusal(out)) reject(out)
        else resolve(out)
      } catch (error) {
        reject(error)
      }
    }
  }

  #next(): void {
    // Callers that were just answered often push again at once, so the next call waits for the end of the tick as well.
    if (this.#planned) return
    if (this.waiting > 0 && this.#mayCall()) this.#plan()
    else if (this.waiting === 0 && this.#idle.length > 0) this.#planNow()
  }

  #take(): Entry<In, Out>[] {
    const { items, bytes: mostBytes, overlap } = this.#limits
    const waiting = this.#waitingSize
    const inTwo = overlap && this.#underWay === 0 && waiting >= 2 * MIN_OVERLAPPING_ITEMS
    const most = Math.min(items, inTwo ? Math.ceil(waiting / 2) : waiting)
    const taken: Entry<In, Out>[] = []
    let bytes = 0
    let size = 0
    for (let entry = this.#waiting.first; entry !== null && size < most; entry = this.#waiting.first) {
      if (taken.length > 0 && (bytes + entry.bytes > mostBytes || size + entry.size > items)) break
      this.#remove(entry)
      bytes += entry.bytes
      size += entry.size
      taken.push(entry)
    }
    return taken
  }

  #remove(entry: Entry<In, Out>): void {
    this.#waiting.remove(entry)
    this.#waitingBytes -= entry.bytes
    this.#waitingSize -= entry.size
  }

  #leaveOn(signal: AbortSignal, entry: Entry<In, Out>): void {
    const { resolve, reject } = entry
    const leave = () => {
      reject(signal.reason)
      if (entry.list === null) return
      this.#remove(entry)
      // Nothing is left to send, but `flushed` resolves at the end of a tick all the same.
      if (this.#idle.length > 0 && this.waiting === 0 && !this.#planned && this.#underWay === 0) this.#planNow()
    }
    signal.addEventListener('abort', leave, { once: true })
    entry.resolve = (out) => {
      signal.removeEventListener('abort', leave)
      resolve(out)
    }
    entry.reject = (error) => {
      signal.removeEventListener('abort', leave)
      reject(error)
    }
  }
}

const isOwnError = (out: unknown): out is Error => out instanceof Error

/** Runs once all promise reactions that are ready now have run, and before any I/O. */
export function atEndOfTick(run: () => void): void {
  // A tick asked for from a microtask runs when no microtask is left; asked for elsewhere it would run before them.
  queueMicrotask(() => process.nextTick(run))
}
