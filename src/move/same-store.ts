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
  const worker = { id, host: hostname(), pid: process.pid, slots: 1, busy: 0 }
  // Where the source is several stores, one in each.
  const queues = queuesOf(a)
  await a.operations.heartbeat({ workers: queues.map((queue) => ({ ...worker, queue })), gone: [] })
  const seen = await b.operations.workers(b.shards === undefined && queues.length === 1 ? { queue: QUEUE } : {})
  await a.operations.heartbeat({ workers: [], gone: [id] })
  return seen.some((one) => one.id === id)
}

function queuesOf({ shards }: Store): string[] {
  const queues = new Map<number, string>()
  for (let n = 0; shards !== undefined && queues.size < shards.count; n++) {
    const queue = `${QUEUE}:${n}`
    if (!queues.has(shards.of(queue))) queues.set(shards.of(queue), queue)
  }
  return queues.size === 0 ? [QUEUE] : [...queues.values()]
}
