/**
 * A delay is served in steps, by the binary digits of its length: a queue for each power of two, in which all messages live equally long.
 * So none waits behind a longer one. RabbitMQ moves a message from each step to the next by itself.
 */

/** In ms; delays are rounded up to a multiple of it. */
export const SHORTEST_WAIT = 32
/** In ms: the longest power of two that RabbitMQ takes as a time to live. */
export const LONGEST_WAIT = 2 ** 31
/** One step of each length: 49 days. For what a longer delay has left, the process that gets the job sends it back. */
export const LONGEST_DELAY = 2 * LONGEST_WAIT - SHORTEST_WAIT

/** @param delay in ms, above 0 @returns the steps, longest first */
export function waitsOf(delay: number): number[] {
  const units = Math.ceil(Math.min(delay, LONGEST_DELAY) / SHORTEST_WAIT)
  const waits: number[] = []
  for (let wait = LONGEST_WAIT; wait >= SHORTEST_WAIT; wait /= 2) {
    if (units & (wait / SHORTEST_WAIT)) waits.push(wait)
  }
  return waits
}
