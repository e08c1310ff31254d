/**
 * Group commit. An item that comes while nothing is being written goes out at the end of the turn, with whatever else
 * came in it; items that come during a write wait for it and go in one call. So batching never adds latency.
 */

interface Entry<In, Out> {
  item: In
  bytes: number
  resolve: (out: Out) => void
  reject: (error: unknown) => void
}

export interface GatherLimits {
  /** Most items in a call. */
  items: number
  /** Most bytes in a call; a single larger item goes alone. */
  bytes: number
}

export class Gather<In, Out> {
  readonly #send: (items: In[]) => Promise<Out[]>
  readonly #limits: GatherLimits
  #waiting: Entry<In, Out>[] = []
  #writing = false
  #planned = false
  #idle: (() => void)[] = []

  constructor(send: (items: In[]) => Promise<Out[]>, limits: GatherLimits) {
    this.#send = send
    this.#limits = limits
  }

  /** Settles with the item's own outcome, or with the error of the call that carried it. */
  add(item: In, bytes: number): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, bytes, resolve, reject })
      if (!this.#writing && !this.#planned) {
        this.#planned = true
        atEndOfTurn(() => this.#write())
      }
    })
  }

  /** Resolves when everything added so far is settled. */
  flushed(): Promise<void> {
    if (!this.#writing && this.#waiting.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  #write(): void {
    this.#planned = false
    const batch = this.#take()
    if (batch.length === 0) {
      for (const resolve of this.#idle.splice(0)) resolve()
      return
    }
    this.#writing = true
    this.#send(batch.map((entry) => entry.item)).then(
      (outs) => {
        this.#writing = false
        for (const [index, entry] of batch.entries()) entry.resolve(outs[index] as Out)
        this.#next()
      },
      (error: unknown) => {
        this.#writing = false
        for (const entry of batch) entry.reject(error)
        this.#next()
      },
    )
  }

  #next(): void {
    // Those who were just answered often have more at once, so the next call waits for the end of the turn as well.
    if (this.#planned) return
    this.#planned = true
    atEndOfTurn(() => this.#write())
  }

  #take(): Entry<In, Out>[] {
    const waiting = this.#waiting
    let count = 0
    let bytes = 0
    while (count < waiting.length && count < this.#limits.items) {
      bytes += waiting[count]?.bytes ?? 0
      if (count > 0 && bytes > this.#limits.bytes) break
      count++
    }
    if (count === waiting.length) {
      this.#waiting = []
      return waiting
    }
    return waiting.splice(0, count)
  }
}

/** Runs once all promise reactions that are ready now have run, and before any I/O. */
export function atEndOfTurn(run: () => void): void {
  // A tick asked for from a microtask runs when no microtask is left; asked for elsewhere it would run before them.
  queueMicrotask(() => process.nextTick(run))
}
