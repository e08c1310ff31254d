import type { Heartbeat } from '../../../store.ts'
import type { StoreContext } from '../context.ts'

/** Dropped. */
export async function heartbeat({ registry }: StoreContext, { workers }: Heartbeat): Promise<boolean[]> {
  return workers.map(({ queue }) => registry.queues.has(queue))
}
