/** Repeats a measurement within one process: the first is cold, the others find warm code. */
import { setImmediate as turn } from 'node:timers/promises'
import { median } from '../../statistics.ts'
import type { Outcome } from '../task.ts'

export interface Rate {
  perSecond: number
  /** CPU of all threads of this process, in microseconds per item: it sways less with what else the machine does. */
  cpu: number
}

export async function rounds(count: number, once: (round: number) => Promise<Rate>): Promise<Outcome> {
  const rates: Rate[] = []
  for (let round = 0; round < count; round++) {
    // What the round before left behind must not be collected on this one's time; in the same turn its promises still hold some of it.
    await turn()
    globalThis.gc?.()
    rates.push(await once(round))
  }
  const first = rates.slice(0, 1)
  const others = rates.length > 1 ? rates.slice(1) : first
  const middle = (of: Rate[], key: keyof Rate) => median(of.map((rate) => rate[key]))
  return {
    cold: middle(first, 'perSecond'),
    warm: middle(others, 'perSecond'),
    'cold cpu': middle(first, 'cpu'),
    'warm cpu': middle(others, 'cpu'),
  }
}

export async function rate(count: number, run: () => Promise<void>): Promise<Rate> {
  const before = process.cpuUsage()
  const began = performance.now()
  await run()
  const took = performance.now() - began
  const { user, system } = process.cpuUsage(before)
  return { perSecond: (count / took) * 1000, cpu: (user + system) / count }
}
