/** What metrics are made of. Two calls, which cost the same however many jobs there are. */

import type { Store } from '../store.ts'
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

export async function figures({ operations, capabilities }: Store): Promise<Figures> {
  const [queues, workers] = await Promise.all([
    operations.stats({ minutes: ALL_MINUTES }),
    capabilities.workers ? operations.workers({}) : null,
  ])
  return { queues: queues.filter(isShown), isExact: capabilities.counts, workers }
}
