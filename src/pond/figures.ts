/** What metrics are made of. Two calls, which cost the same however many jobs there are. */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { ALL_MINUTES } from '../values/figures/histogram.ts'
import type { QueueStats, WorkerRecord } from '../values/operations/requests.ts'
import { isShown } from './actions.ts'

export interface Figures {
  /** With histograms since the queue came to be. */
  queues: QueueStats[]
  /** false: of the counts, only those of waiting and dead jobs hold for all processes; no other figure does. */
  isExact: boolean
  /** null: the store does not know workers. */
  workers: WorkerRecord[] | null
}

/** Of ponds, which others know by their public side alone. */
const readers = new WeakMap<object, () => Promise<Figures>>()

/** @param assertOpen throws Closed */
export function registerFigures(pond: object, store: Store, assertOpen: () => void): void {
  readers.set(pond, async () => {
    assertOpen()
    return figures(store)
  })
}

/** @param pond a `Millpond` @throws Closed, `Store…` */
export async function figuresOf(pond: object): Promise<Figures> {
  const read = readers.get(pond)
  if (read === undefined)
    throw new MillpondError('InvalidOption', 'metrics are those of a pond, as Millpond.open returns it')
  return read()
}

async function figures({ operations, capabilities }: Store): Promise<Figures> {
  const [queues, workers] = await Promise.all([
    operations.stats({ minutes: ALL_MINUTES }),
    capabilities.workers ? operations.workers({}) : null,
  ])
  return { queues: queues.filter(isShown), isExact: capabilities.counts, workers }
}
