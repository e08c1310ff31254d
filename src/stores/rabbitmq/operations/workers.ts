import type { Heartbeat } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'

/** Dropped. */
export async function heartbeat({ queues }: StoreContext, { workers }: Heartbeat): Promise<boolean[]> {
  return workers.map(({ queue }) => queues.has(queue))
}
