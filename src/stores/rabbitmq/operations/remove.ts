import type { Removed, RemoveRequest } from '../../../store.ts'
import { lacking } from '../capabilities.ts'
import type { StoreContext } from '../context.ts'

/** A whole queue in one call. What others push meanwhile is there afterwards, as it is in lines that they make anew. */
export async function remove(context: StoreContext, request: RemoveRequest): Promise<Removed> {
  if (!('queue' in request) || request.state !== undefined) throw lacking('remove', 'remove of jobs')
  const { queue } = request
  const { registry, topology, names, sources, totals } = context
  const until = registry.next
  const lines = registry.lines(queue)
  if (!registry.queues.has(queue)) return { removed: 0, more: false }
  const all = [...lines.map((line) => names.line(queue, line)), names.dead(queue)]
  const counts = await Promise.all(all.map((name) => topology.count(name)))
  await topology.remove(queue, lines)
  await registry.append({ queue, removed: until })
  sources.get(queue)?.forget()
  totals.delete(queue)
  for (const kind of ['work', 'room', 'finished', 'cancelled'] as const) context.bells.ring(kind, queue)
  return { removed: counts.reduce<number>((sum, count) => sum + (count ?? 0), 0), more: false }
}
