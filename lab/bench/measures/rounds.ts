/** Repeats a measurement within one process: the first is cold, the others find warm code. */
import type { Outcome } from '../measure.ts'
import { median } from '../statistics.ts'

/** @param once returns things per second */
export async function rounds(count: number, once: (round: number) => Promise<number>): Promise<Outcome> {
  const rates: number[] = []
  for (let round = 0; round < count; round++) {
    // What the round before left behind must not be collected on this one's time.
    globalThis.gc?.()
    rates.push(await once(round))
  }
  const [cold = Number.NaN, ...warm] = rates
  return { cold, warm: median(warm.length > 0 ? warm : [cold]) }
}

/** Things per second. */
export async function rate(count: number, run: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await run()
  return (count / (performance.now() - began)) * 1000
}
