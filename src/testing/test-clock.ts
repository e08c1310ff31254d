/** A clock that stands still until it is moved. */
export class TestClock {
  #now: number
  readonly #moved: ((now: Date) => void) | undefined

  /** @param moved told of each new time */
  constructor(now: number, moved: ((now: Date) => void) | undefined) {
    this.#now = now
    this.#moved = moved
  }

  /** Milliseconds since 1970. */
  readonly now = (): number => this.#now

  move(to: number): void {
    this.#now = to
    this.#moved?.(new Date(to))
  }
}
