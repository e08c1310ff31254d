import type { Heartbeat } from '../../../store.ts'
import { lacks } from '../capabilities.ts'
import type { StoreContext } from '../context.ts'

export const workers = lacks('workers', 'workers')

/** Dropped. */
export async function heartbeat({ registry }: StoreContext, { workers }: Heartbeat): Promise<boolean[]> {
  return workers.map(({ queue }) => registry.queues.has(queue))
}
