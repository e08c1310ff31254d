/** Counts and histograms per queue, its partitions summed. */
import { JOB_STATES, type QueueStats } from '../../store.ts'
import { statsInput } from './inputs.ts'
import { addCount, statsReply } from './outputs.ts'
import type { Shared } from './shared.ts'

export async function stats(
  { link, queues, now }: Shared,
  { queue, minutes = 0 }: { queue?: string; minutes?: number },
): Promise<QueueStats[]> {
  link.assertOpen()
  const partitions = queue === undefined ? (await queues.all()).registered : ((await queues.registered(queue)) ?? [])
  const parts = await Promise.all(
    partitions.map(async (partition) =>
      statsReply(await link.call('stats', partition, statsInput(now(), partition, minutes).bytes), partition.queue),
    ),
  )
  const merged = new Map<string, QueueStats>()
  for (const part of parts) {
    const known = merged.get(part.queue)
    if (known === undefined) merged.set(part.queue, part)
    else merge(known, part)
  }
  return [...merged.values()]
}

function merge(into: QueueStats, part: QueueStats): void {
  for (const state of JOB_STATES) into.counts[state] += part.counts[state]
  if (into.capacity !== null && part.capacity !== null) into.capacity += part.capacity
  if (part.oldestWaiting !== null) into.oldestWaiting = Math.max(into.oldestWaiting ?? 0, part.oldestWaiting)
  for (const slice of part.histograms) addCount(into.histograms, slice)
}
