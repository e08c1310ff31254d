import { LONGEST_TIMER } from '../values/time/duration.ts'

/** The end of the time that an attempt may take. */
export class Deadline {
  readonly #passed: () => void
  readonly #timer: NodeJS.Timeout

  /** @param passed called once, in so many milliseconds or at `pass`, unless it is cancelled before */
  constructor(ms: number, passed: () => void) {
    this.#passed = passed
    // A push by SQL may have given more than a timer can hold. An open worker keeps the process alive; a closed one must not, whatever its
    // handler still does.
    this.#timer = setTimeout(passed, Math.min(ms, LONGEST_TIMER)).unref()
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }

  /** Its time is over by a clock that a test has moved. */
  pass(): void {
    this.cancel()
    this.#passed()
  }
}
