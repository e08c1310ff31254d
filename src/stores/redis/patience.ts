/**
 * How long calls to several partitions wait for the last of them. Partitions lie on several servers, of which one may be gone: what the
 * others have answered is not held up until its calls time out.
 */

/** Milliseconds that the last one gets beyond the others. */
const LEAST = 250
/** And so many times what answers have taken of late: where all are slow, none is left behind. */
const TIMES = 4

export class Patience {
  #typical = 0

  /** Milliseconds. */
  get limit(): number {
    return LEAST + TIMES * this.#typical
  }

  /** Notes how long an answer takes. A rise counts at once, a fall bit by bit. */
  async timed<T>(call: Promise<T>): Promise<T> {
    const sent = performance.now()
    const answer = await call
    this.#typical = Math.max(performance.now() - sent, this.#typical * 0.95)
    return answer
  }
}

/**
 * Waits until all are settled, but from the first answer on for no longer than the patience.
 * @param answered whether something has answered before
 * @returns per call how it settled; undefined: it was left behind, and is still under way
 */
export async function inTime<T>(
  calls: readonly Promise<T>[],
  patience: number,
  answered = false,
): Promise<(PromiseSettledResult<T> | undefined)[]> {
  const settled: (PromiseSettledResult<T> | undefined)[] = calls.map(() => undefined)
  const { promise: over, resolve } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let left = calls.length
  const wait = (): void => {
    // A busy process reads late: what has come in by then counts.
    timer ??= setTimeout(setImmediate, patience, resolve)
  }
  const settle = (at: number, result: PromiseSettledResult<T>): void => {
    settled[at] = result
    if (result.status === 'fulfilled') wait()
    if (--left === 0) resolve()
  }
  if (answered) wait()
  for (const [at, call] of calls.entries()) {
    call.then(
      (value) => settle(at, { status: 'fulfilled', value }),
      (reason: unknown) => settle(at, { status: 'rejected', reason }),
    )
  }
  if (left > 0) await over
  clearTimeout(timer)
  // What is settled from here on comes too late.
  return [...settled]
}
