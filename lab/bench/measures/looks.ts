/** What people and tools ask of a store while very many jobs wait: each look by itself, in milliseconds. */
import type { Store } from '../../../src/store.ts'

export const LOOKS = ['list waiting', 'list dead', 'stats', 'find'] as const
export type Look = (typeof LOOKS)[number]

/** @param id of some job that waits */
export async function look(store: Store, queue: string, what: Look, id: string): Promise<number> {
  const began = performance.now()
  switch (what) {
    case 'list waiting':
      await store.admin.list({ queue, state: 'waiting', limit: 100 })
      break
    case 'list dead':
      await store.admin.list({ queue, state: 'dead', limit: 100 })
      break
    case 'stats':
      await store.stats({ queue, minutes: 5 })
      break
    case 'find':
      await store.find([id])
      break
  }
  return performance.now() - began
}
