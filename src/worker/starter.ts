/** Starts buffered jobs while slots are free, but not for long without a break: timers and sockets are served in between. */

/** Handlers are started for this long without a break, in milliseconds. */
const MAX_TICK = 5

/** So many jobs, of this priority or a higher one. */
export interface Wanted {
  limit: number
  minPriority: number
}

/** The slots of a worker: each for a job, or for a batch. */
export interface Slots {
  /** How many are taken. */
  readonly taken: number
  /** Whether a job is buffered and a slot is free for it. */
  readonly ready: boolean
  /** What a claim is to bring. */
  wanted(): Wanted
  /** Most jobs of a group that it is to bring in one turn of the group. */
  readonly perGroup: number
  /** Starts what is next. @param now `performance.now()` @returns false: nothing is to start yet */
  start(now: number): boolean
  close(): void
}

export class Starter {
  readonly #slots: Slots
  readonly #started: () => void
  #break: NodeJS.Immediate | undefined
  /** When timers and sockets were last served, as far as we know. */
  #tickBegan = performance.now()

  /** @param started called after each break and the starts behind it */
  constructor(slots: Slots, started: () => void) {
    this.#slots = slots
    this.#started = started
  }

  /** @param now `performance.now()`, which costs enough to be handed on */
  start(now: number): void {
    let time = now
    while (this.#slots.ready && this.#break === undefined) {
      if (time - this.#tickBegan > MAX_TICK) {
        this.#break = setImmediate(() => {
          this.#break = undefined
          this.startInNewTick()
          this.#started()
        })
        return
      }
      if (!this.#slots.start(time)) return
      // Mostly one slot is free and one job is started, which needs no other look at the clock.
      if (this.#slots.ready) time = performance.now()
    }
  }

  /** As `start`. Timers and sockets were served. */
  startInNewTick(): void {
    this.#tickBegan = performance.now()
    this.start(this.#tickBegan)
  }
}
