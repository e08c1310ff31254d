/** Sweeps all queues: looks at every partition in one round trip, then goes to those with something to do, until a limit is reached. */
import type { Swept } from '../../store.ts'
import { type SweepLimits, sweepInput } from './inputs.ts'
import { type SweepReply, sweepReply } from './outputs.ts'
import type { Partition } from './partition.ts'
import type { Shared } from './shared.ts'

export async function sweep(shared: Shared, limit: number): Promise<Swept> {
  shared.link.assertOpen()
  const partitions = await shared.queues.all()
  const look = { promote: 0, lose: 0, expire: 0 }
  const looks = await Promise.all(partitions.map((partition) => sweepOne(shared, partition, look)))
  const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null }
  for (const [i, partition] of partitions.entries()) {
    const seen = looks[i]
    if (seen === undefined) continue
    const limits = { promote: limit - swept.promoted, lose: limit - swept.lost.length, expire: limit - swept.expired }
    const reply = seen.due ? await sweepOne(shared, partition, limits) : seen
    add(swept, partition.queue, reply)
    ring(shared, partition.queue, reply)
  }
  swept.more = swept.promoted >= limit || swept.lost.length >= limit || swept.expired >= limit
  return swept
}

async function sweepOne({ link, now }: Shared, partition: Partition, limits: SweepLimits): Promise<SweepReply> {
  return sweepReply(await link.call('sweep', partition, sweepInput(now(), partition, limits).bytes))
}

function add(swept: Swept, queue: string, { promoted, expired, lost, next }: SweepReply): void {
  swept.promoted += promoted
  swept.expired += expired
  for (const { id, attempt, state } of lost) swept.lost.push({ id, queue, attempt, state })
  if (next !== null) swept.nextDue = Math.min(swept.nextDue ?? next, next)
}

function ring({ bells }: Shared, queue: string, { promoted, lost }: SweepReply): void {
  if (promoted > 0 || lost.some(({ state }) => state === 'waiting')) bells.work(queue)
  for (const { id, state } of lost) if (state === 'dead') bells.finished(queue, id)
}
