/** Waiting for what a test cannot be told of. */

import { setTimeout as sleep } from 'node:timers/promises'

/**
 * How long anything may take before it counts as hanging, in milliseconds. It costs time only when a test fails.
 * It is less than the minute that a test has, so that the failure says what was waited for.
 */
export const BOUND = Number(process.env.MILLPOND_FAULT_BOUND ?? 55_000)

type Condition = () => boolean | Promise<boolean>

/** Waits until the condition holds, also where looking at it takes for ever. An error that it throws ends the wait. */
export async function until(condition: Condition, what = String(condition), bound = BOUND): Promise<void> {
  const end = performance.now() + bound
  const late = new Error(`still not so after ${bound} ms: ${what}`)
  const { promise: over, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(reject, bound, late)
  try {
    while (!(await Promise.race([condition(), over]))) {
      if (performance.now() > end) throw late
      await sleep(5)
    }
  } finally {
    clearTimeout(timer)
    over.catch(() => {})
  }
}

/** Waits until the condition holds. An error that it throws counts as no. */
export async function untilCalm(condition: Condition, what: string, bound = BOUND): Promise<void> {
  let last: unknown
  const calm = async () => {
    try {
      return await condition()
    } catch (error) {
      last = error
      return false
    }
  }
  await until(calm, what, bound).catch(({ message }: Error) => Promise.reject(new Error(message, { cause: last })))
}
