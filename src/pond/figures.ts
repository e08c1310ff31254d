/** What metrics are made of. Two calls, which cost the same however many jobs there are. */

import { ALL_MINUTES } from '../values/figures/histogram.ts'
import type { QueueStats, WorkerRecord } from '../values/operations/requests.ts'
import { isShown } from './actions.ts'
import { internalsOf } from './internals.ts'

export interface Figures {
  /** With histograms since the queue came to be. */
  queues: QueueStats[]
  /** false: of the counts, only those of waiting and dead jobs hold for all processes; no other figure does. */
  isExact: boolean
  /** null: the store does not know workers. */
  workers: WorkerRecord[] | null
}

/** @param pond a `Millpond` @throws Closed, `Store…` */
export async function figuresOf(pond: object): Promise<Figures> {
  const { assertOpen, store } = internalsOf(pond)
  assertOpen()
  const [queues, workers] = await Promise.all([
    store.operations.stats({ minutes: ALL_MINUTES }),
    store.capabilities.workers ? store.operations.workers({}) : null,
  ])
  return { queues: queues.filter(isShown), isExact: store.capabilities.counts, workers }
}
