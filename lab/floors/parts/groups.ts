/** Ten thousand groups, each of which may run two jobs at once, worked off by workers. */
import { atLeast } from '../../bars.ts'
import { STORES, type StoreName } from '../../limits/part.ts'
import { JOBS, JUDGED, LEAST, windowsByWorkers } from '../../limits/parts/drain.ts'
import { tell } from '../../progress.ts'
import { median } from '../../statistics.ts'
import type { Part } from '../part.ts'

/**
 * The length of a window, in ms. The windows of one drain stand for several runs, since filling the backlog takes longer than measuring.
 * Memory works off the whole backlog in a few seconds.
 */
const WINDOW: Record<StoreName, number> = { memory: 500, sqlite: 2000, postgres: 2000, redis: 2000 }

export const groups: Part = async function* ({ runs, quick }, stage) {
  const part = quick ? 0.1 : 1
  for (const store of STORES) {
    tell(`groups on ${store}`)
    const url = await (await stage.place(store)).fresh()
    const rates = await windowsByWorkers(url, JOBS * part, JUDGED, runs, WINDOW[store] * part)
    const figure = `${JUDGED.toLocaleString('en')} groups, drained by workers: ${store}`
    yield { figure, bar: atLeast(median(rates), LEAST[store], ' jobs/s') }
  }
}
