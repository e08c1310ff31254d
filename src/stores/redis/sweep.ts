/**
 * Sweeps all queues: looks at every partition in one round trip, then goes to those with something to do, until a limit is reached.
 * Partitions that cannot be reached do not keep the others from being swept. That is told by rejecting, but only when nothing was swept,
 * since what was lost is told by the answer alone.
 */
import type { Swept } from '../../store.ts'
import { type SweepLimits, sweepInput } from './inputs.ts'
import { type SweepReply, sweepReply } from './outputs.ts'
import type { Partition } from './partition.ts'
import { removeQueue } from './remove.ts'
import { settled, type Trouble } from './settled.ts'
import type { Shared } from './shared.ts'

export async function sweep(shared: Shared, limit: number): Promise<Swept> {
  shared.link.assertOpen()
  const { registered, others, failure } = await shared.queues.reachable()
  const partitions = [...registered, ...others]
  const look = { promote: 0, lose: 0, expire: 0 }
  const looks = await settled(partitions.map((partition) => sweepOne(shared, partition, look)))
  let trouble: Trouble | undefined = failure ?? looks.failure
  const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0 }
  const busy = new Set<string>()
  for (const [i, partition] of partitions.entries()) {
    const seen = looks.replies[i]
    if (seen?.idle !== true) busy.add(partition.queue)
    if (seen === undefined) continue
    const limits = { promote: limit - swept.promoted, lose: limit - swept.lost.length, expire: limit - swept.expired }
    const { replies, failure } = await settled([seen.due ? sweepOne(shared, partition, limits) : Promise.resolve(seen)])
    trouble ??= failure
    for (const reply of replies) {
      if (reply === undefined) continue
      add(swept, partition.queue, reply)
      ring(shared, partition.queue, reply)
    }
  }
  await tidy(shared, registered, others, busy).catch(() => undefined)
  swept.queues = namesOf(registered).size
  const nothing = swept.promoted === 0 && swept.expired === 0 && swept.lost.length === 0
  if (nothing && trouble !== undefined) throw trouble.reason
  swept.more = swept.promoted >= limit || swept.lost.length >= limit || swept.expired >= limit
  return swept
}

/**
 * Removes queues that have been idle for long, and brings those back to the list that it has lost with a failover. What the sweep found is told
 * all the same where this fails.
 */
async function tidy(
  shared: Shared,
  registered: readonly Partition[],
  others: readonly Partition[],
  busy: ReadonlySet<string>,
): Promise<void> {
  const { queues, idle, now } = shared
  for (const name of namesOf(others)) {
    if (busy.has(name)) await queues.create(name)
    else queues.forget(name)
  }
  const unused = [...namesOf(registered)].filter((name) => !busy.has(name))
  for (const name of idle.found(unused, now() ?? Date.now())) await removeQueue(shared, name)
}

const namesOf = (partitions: readonly Partition[]): Set<string> => new Set(partitions.map(({ queue }) => queue))

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
