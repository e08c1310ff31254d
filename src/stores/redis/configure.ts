/** A queue's settings, on all of its partitions. */
import { MillpondError } from '../../errors.ts'
import { type QueueSettings, setsNothing } from '../../store.ts'
import { configureInput } from './inputs.ts'
import type { Shared } from './shared.ts'

/** @throws InvalidOption where the capacity is less than the partitions: each has its share */
export async function configure({ link, queues, bells, now }: Shared, settings: QueueSettings): Promise<void> {
  link.assertOpen()
  if (setsNothing(settings)) return
  const { queue, ...given } = settings
  const partitions = await queues.create(queue)
  const { capacity } = given
  const count = partitions.length
  if (typeof capacity === 'number' && capacity < count) {
    const message = `capacity must be at least ${count}, as the queue ${queue} is split into ${count} partitions and each has its share`
    throw new MillpondError('InvalidOption', message, { queue })
  }
  await Promise.all(
    partitions.map(async (partition) => {
      const share =
        typeof capacity === 'number'
          ? { capacity: Math.floor(capacity / count) + (partition.index < capacity % count ? 1 : 0) }
          : {}
      const { bytes } = configureInput(now(), partition, { ...given, ...share })
      const reply = await link.call('configure', partition, bytes, { safe: true })
      if (reply.length > 0) await queues.list(partition)
    }),
  )
  if (capacity !== undefined) bells.room(queue)
  if (settings.paused === false) bells.work(queue)
}
