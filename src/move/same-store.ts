/**
 * Whether two connections lead to one store. A move from a store to itself would remove every job, and two URLs may name the same place. So
 * a worker of no queue is announced at one, and looked for at the other.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Store } from '../store.ts'

const QUEUE = 'millpond.move'

export async function isSameStore(a: Store, b: Store): Promise<boolean> {
  if (a.name !== b.name || !a.capabilities.workers || !b.capabilities.workers) return false
  const id = `move:${randomUUID()}`
  const worker = { id, queue: QUEUE, host: hostname(), pid: process.pid, slots: 1, busy: 0 }
  await a.operations.heartbeat({ workers: [worker], gone: [] })
  const seen = await b.operations.workers({ queue: QUEUE })
  await a.operations.heartbeat({ workers: [], gone: [id] })
  return seen.some((one) => one.id === id)
}
