/** How far what is in the process may be trusted without a look into Redis. */

export interface Watch {
  /** Another one each time that a change elsewhere may have been missed. */
  readonly epoch: number
  /** Everything that changed before has been heard, by `performance.now()`, if the epoch is still the same. */
  readonly aliveAt: number
}

/** Without Redis there is nobody else. */
export const ALONE: Watch = { epoch: 0, aliveAt: Number.POSITIVE_INFINITY }

/** When a look into Redis, or a load, was begun: what it brings is at least as new as that. */
export interface Begun {
  /** By `performance.now()`. */
  seenAt: number
  epoch: number
}

/** What was read from Redis, or stored there. */
export interface Seen extends Begun {
  /** Something was heard of it since: it may have changed. */
  suspect: boolean
}

export class Trust {
  readonly #watch: Watch
  readonly #drift: number

  /** @param drift how long something may be answered that others have changed, in ms */
  constructor(watch: Watch, drift: number) {
    this.#watch = watch
    this.#drift = drift
  }

  /** Both at once: an epoch that is taken later would vouch for what was missed in between. */
  begin(): Begun {
    return { seenAt: performance.now(), epoch: this.#watch.epoch }
  }

  holds({ seenAt, epoch, suspect }: Seen, now: number): boolean {
    if (suspect) return false
    return now - seenAt < this.#drift || (epoch === this.#watch.epoch && now - this.#watch.aliveAt < this.#drift)
  }
}
