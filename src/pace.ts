/** How soon a busy worker claims again when its last claim came back short. */

/** Claims that bring as many are the sign of a stream: more jobs are coming. */
export const MANY = 32
const PAUSE = 2
const LONGEST_PAUSE = 10

/**
 * It waits for `PAUSE` times as long as the claim took, and for `LONGEST_PAUSE` at the most; just as long if it brought many, since a call
 * costs a store as much as the first dozens of its jobs.
 * @param took what the claim took, in ms
 * @returns milliseconds
 */
export function pauseAfter(jobs: number, took: number): number {
  return jobs >= MANY ? LONGEST_PAUSE : Math.min(PAUSE * took, LONGEST_PAUSE)
}
