/** Removes queues that nobody uses: contract/redis/unregister.lua tells how that spares what is pushed at the same moment. */
import { randomUUID } from 'node:crypto'
import { begun } from './inputs.ts'
import type { Partition } from './partition.ts'
import { Reader } from './reader.ts'
import { settled } from './settled.ts'
import type { Shared } from './shared.ts'

/** A queue that was found idle. @returns whether it was removed */
export async function removeQueue(shared: Shared, name: string): Promise<boolean> {
  const { queues } = shared
  const partitions = queues.known(name) ?? []
  const token = randomUUID()
  const floor = await queues.unregister(name, partitions.length, token)
  if (floor === null) return false
  const { replies } = await settled(partitions.map((partition) => removePartition(shared, partition, floor)))
  const removed = replies.every((one) => one === true)
  if (removed) queues.forget(name)
  await queues.unregistered(name, partitions.length, token, removed)
  return removed
}

async function removePartition({ link, now }: Shared, partition: Partition, floor: number): Promise<boolean> {
  const input = begun(now(), partition, 3, (packer) => packer.number(floor))
  return new Reader(await link.call('remove', partition, input.bytes)).boolean()
}
