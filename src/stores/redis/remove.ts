/** Removes queues that nobody uses: contract/redis/unregister.lua tells how that spares what is pushed at the same moment. */
import { randomUUID } from 'node:crypto'
import { settled } from './settled.ts'
import type { Shared } from './shared.ts'

/** A queue of which a partition was found idle for long. Does nothing if another is not. */
export async function removeQueue(shared: Shared, name: string): Promise<void> {
  const { queues } = shared
  const partitions = (await queues.registered(name)) ?? []
  const token = randomUUID()
  const floor = await queues.unregister(name, partitions.length, token)
  if (floor === null) return
  const { replies } = await settled(partitions.map((partition) => shared.ask('remove', partition, [floor])))
  const removed = replies.every((reply) => reply?.[0] === 1)
  if (removed) queues.forget(name)
  await queues.unregistered(name, partitions.length, token, removed)
}
