/** Counts and histograms per queue, its partitions summed. */
import { JOB_STATES, type QueueStats } from '../../store.ts'
import { addCount, statsReply } from './replies.ts'
import { cut, type Shared } from './shared.ts'

/** Queues asked at once: others' calls must not wait behind thousands. */
const AT_ONCE = 50

export async function stats(
  shared: Shared,
  { queue, minutes = 0 }: { queue?: string; minutes?: number },
): Promise<QueueStats[]> {
  shared.link.assertOpen()
  const { queues } = shared
  const partitions = queue === undefined ? await queues.all() : ((await queues.registered(queue)) ?? [])
  const merged = new Map<string, QueueStats>()
  for (const some of cut(partitions, AT_ONCE)) {
    const replies = await Promise.all(some.map((partition) => shared.ask('stats', partition, [minutes])))
    for (const [i, partition] of some.entries()) {
      const part = statsReply(replies[i] ?? [], partition.queue)
      const known = merged.get(partition.queue)
      if (known === undefined) merged.set(partition.queue, part)
      else merge(known, part)
    }
  }
  return [...merged.values()]
}

function merge(into: QueueStats, part: QueueStats): void {
  for (const state of JOB_STATES) into.counts[state] += part.counts[state]
  if (into.capacity !== null && part.capacity !== null) into.capacity += part.capacity
  if (part.oldestWaiting !== null) into.oldestWaiting = Math.max(into.oldestWaiting ?? 0, part.oldestWaiting)
  for (const slice of part.histograms) addCount(into.histograms, slice)
}
