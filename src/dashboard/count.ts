/** How many jobs a search finds: so many as can be counted while a person waits. */

import { internalsOf } from '../pond/internals.ts'
import type { Store } from '../store.ts'
import type { JobFilter } from '../values/operations/requests.ts'
import { checkOptions, defined } from '../values/options/options.ts'
import type { Call } from './context.ts'
import { isName, SEARCH_TIME } from './reads.ts'
import { SEARCH_RULES, searchQuery } from './search-input.ts'
import type { CountView, Search } from './views.ts'

/** From here on a person needs no exact number. A bulk change has a preview, which counts further. */
const ENOUGH = 1000

export async function count(call: Call, body: object): Promise<CountView> {
  type Body = Search & { queue: string }
  const rules = { ...SEARCH_RULES, queue: isName }
  const { queue, ...search } = checkOptions<Body>(body as Body, rules, 'count', ['queue', 'state'])
  const may = await call.seen(queue)
  const { store } = internalsOf(call.pond)
  const { state, filter } = searchQuery(store, queue, search, { may, redaction: call.context.redaction })
  const [stats] = await store.operations.stats({ queue, minutes: 0 })
  const total = stats?.counts[state] ?? 0
  if (Object.keys(filter).length === 0) return { kind: 'exact', count: total, looked: total, total }
  return counted(store, { queue, state, filter }, total)
}

/**
 * Steps of a bulk change that changes nothing: filters have no index.
 * @param total of the state @param time milliseconds after which the rest is estimated
 */
export async function counted(
  store: Store,
  query: { queue: string; state: Search['state']; filter: JobFilter },
  total: number,
  time = SEARCH_TIME,
): Promise<CountView> {
  const end = performance.now() + time
  let [looked, matched] = [0, 0]
  let at: { after?: string; until?: number } = {}
  for (;;) {
    const step = await store.operations.bulk({ ...query, ...at, change: { kind: 'remove' }, limit: 0 })
    looked += step.looked
    matched += step.matched
    if (step.next === null) return { kind: 'exact', count: matched, looked, total }
    if (matched >= ENOUGH) return { kind: 'more', count: ENOUGH, looked, total }
    if (performance.now() >= end) return { kind: 'estimate', count: estimated(matched, looked, total), looked, total }
    at = defined({ after: step.next, until: at.until ?? step.now })
  }
}

const estimated = (matched: number, looked: number, total: number): number =>
  looked === 0 ? 0 : Math.max(matched, Math.round((matched / looked) * total))
