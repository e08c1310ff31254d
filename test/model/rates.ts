/** Rates as `contract/operations.md` has them, once more. */

import type { JobRecord } from '../../src/values/jobs/records.ts'
import type { BackoffPolicy } from '../../src/values/settings/backoff.ts'
import type { Rate } from '../../src/values/settings/limits.ts'

/** Microseconds. */
export const step = ({ count, per }: Rate) => Math.ceil((per * 1000) / count)

const burst = (rate: Rate) => rate.burst ?? Math.max(1, Math.floor((rate.count * 100) / rate.per))

/** What a queue or a group keeps of its rate. */
export interface Rated {
  full: number
  fullCost: number
}

/** What `full` counts as. */
export function counted(rate: Rate | null, { full, fullCost }: Rated, now: number): number {
  return rate === null ? full : Math.min(full, now * 1000 + Math.max(burst(rate), fullCost) * step(rate))
}

/** Milliseconds until a start is allowed. */
export function waitFor(rate: Rate, rated: Rated, now: number, cost: number): number {
  const credit = Math.max(burst(rate), cost) - cost
  return Math.ceil((counted(rate, rated, now) - credit * step(rate)) / 1000) - now
}

/** Microseconds. */
export function givenBack(rate: Rate | null, { startedAt, cost = 1 }: JobRecord, now: number): number {
  if (rate === null || startedAt === null) return 0
  const price = cost * step(rate)
  return Math.min(price, Math.max(0, startedAt * 1000 + price - now * 1000))
}

/** The sequences set no jitter: what is left to chance is in vectors/backoff.json. */
export function backoffAfter({ base, factor, max }: BackoffPolicy, attempt: number): number {
  return base === 0 ? 0 : Math.floor(Math.min(max, base * factor ** (attempt - 1)))
}
