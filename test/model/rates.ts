/** Rates as `contract/operations.md` has them, once more. */

import type { JobRecord } from '../../src/store.ts'
import type { Rate } from '../../src/values/limits.ts'

/** Microseconds. */
export const step = ({ count, per }: Rate) => Math.ceil((per * 1000) / count)

/** Milliseconds until a start is allowed. */
export function waitFor(rate: Rate, full: number, now: number, cost: number): number {
  const burst = Math.max(cost, rate.burst ?? Math.max(1, Math.floor((rate.count * 100) / rate.per)))
  return Math.ceil((full - (burst - cost) * step(rate)) / 1000) - now
}

/** Microseconds. */
export function givenBack(rate: Rate | null, { startedAt, cost = 1 }: JobRecord, now: number): number {
  if (rate === null || startedAt === null) return 0
  const price = cost * step(rate)
  return Math.min(price, Math.max(0, startedAt * 1000 + price - now * 1000))
}
