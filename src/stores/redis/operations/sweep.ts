/**
 * Sweeps all queues: asks each bucket which of its partitions have something to do, and sweeps those, until a limit is reached. So a sweep costs
 * what is due, not how many queues there are. A partition that cannot be reached does not keep the others from being swept. The sweep then
 * rejects only if nothing was swept, since the answer is the only report of lost claims.
 */
import type { Swept } from '../../../store.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import { BUCKETS, type Partition, parsedPart, tagOf } from '../partition.ts'
import { chunks, Failures, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { bytesIn, idText, numberIn, textIn, timeOrNull } from '../wire.ts'
import { statsOf } from './stats.ts'

/** Queues that one sweep removes. */
const MAX_REMOVED = 100

interface Found extends Pick<Swept, 'lost' | 'promoted' | 'expired'> {
  /** How many it has looked at, whether to forget them. */
  groups: number
  /** Queues of which a partition has been idle for long. */
  idle: Set<string>
}

export async function sweep(context: Context, limit: number): Promise<Swept> {
  const { calls, queues } = context
  calls.assertOpen()
  // Each bucket is the first in turn, so that none waits for ever behind others.
  const turn = context.turn++ % BUCKETS
  const buckets = Array.from({ length: BUCKETS }, (_, i) => (i + turn) % BUCKETS)
  const failures = new Failures()
  const look = (bucket: number, most: number) => failures.noted(dueIn(context, bucket, most))
  const looks = await Promise.all(buckets.map((bucket) => look(bucket, Math.min(limit, MAX_ITEMS_PER_CALL))))
  const found: Found = { lost: [], promoted: 0, expired: 0, groups: 0, idle: new Set() }
  const partitions = looks.flatMap((due) => due?.partitions ?? [])
  for (const partition of partitions) await failures.noted(sweepPartition(context, partition, limit, found))
  const { lost, promoted, expired, groups, idle } = found
  // What was swept is answered even where the following fails.
  const later = new Failures()
  await Promise.all([...idle].slice(0, MAX_REMOVED).map((name) => later.noted(remove(context, name))))
  const count = await failures.noted(queues.count())
  if (count !== undefined && count < queues.allKnown().size) await later.noted(relist(context))
  if (promoted === 0 && expired === 0 && lost.length === 0) failures.throwFirst()
  const changed = new Set(partitions.map(({ bucket }) => bucket))
  const again = await Promise.all(buckets.map((bucket, i) => (changed.has(bucket) ? look(bucket, 0) : looks[i])))
  const times = again.flatMap((due) => due?.next ?? [])
  return {
    lost,
    promoted,
    expired,
    more: Math.max(promoted, lost.length, expired, groups) >= limit,
    nextDue: times.length === 0 ? null : Math.min(...times),
    queues: count ?? 0,
  }
}

/** @returns the ms until the next scheduled job of the bucket is due, and the partitions that have something to do */
async function dueIn({ calls, queues, prefix, now }: Context, bucket: number, limit: number) {
  const tag = tagOf(prefix, bucket)
  const [next, ...parts] = await calls.script('due', { tag, keys: [`${tag}:due`, `${tag}:ends`] }, [now() ?? '', limit])
  const partitions = parts.map((part) => {
    const { queue, index } = parsedPart(textIn(part))
    return queues.partition(queue, index)
  })
  return { next: timeOrNull(next), partitions }
}

async function sweepPartition(context: Context, partition: Partition, limit: number, found: Found): Promise<void> {
  const { queue } = partition
  const { local } = context.notifier
  let full = true
  while (full) {
    const done = [found.promoted, found.lost.length, found.expired, found.groups]
    const limits = done.map((count) => Math.min(limit - count, MAX_ITEMS_PER_CALL))
    const [promoted, expired, groups, isIdle, ...items] = await callScript(context, 'sweep', partition, {
      head: limits,
    })
    const lost = chunks(items, 3).map(([id, attempt, dead]) => ({
      id: idText(bytesIn(id)),
      queue,
      attempt: numberIn(attempt),
      state: dead === 1 ? ('dead' as const) : ('waiting' as const),
    }))
    const counts = [promoted, lost.length, expired, groups].map(numberIn)
    found.lost.push(...lost)
    found.promoted += numberIn(promoted)
    found.expired += numberIn(expired)
    found.groups += numberIn(groups)
    if (isIdle === 1) found.idle.add(queue)
    for (const { id, state } of lost) if (state === 'dead') local.ring('finished', queue, id)
    if (promoted !== 0 || lost.some(({ state }) => state === 'waiting')) local.ring('work', queue)
    full = counts.includes(MAX_ITEMS_PER_CALL)
  }
}

/** A queue of which a partition was found idle for long. Does nothing if another is not. */
async function remove(context: Context, name: string): Promise<void> {
  await context.queues.remove(name, async (partitions, floor) => {
    const failures = new Failures()
    const replies = await Promise.all(
      partitions.map((partition) => failures.noted(callScript(context, 'remove', partition, { head: [floor] }))),
    )
    return replies.every((reply) => reply?.[0] === 1)
  })
}

/** The list of queues has lost some: those that hold jobs get back into it, the others are forgotten. */
async function relist(context: Context): Promise<void> {
  const { queues } = context
  const known = new Map(queues.allKnown())
  const listed = await queues.all()
  for (const [name, partitions] of known) {
    if (listed.has(name)) continue
    const [own] = await statsOf(context, partitions, 0)
    if (Object.values(own?.counts ?? {}).some((count) => count > 0)) await queues.create(name)
    else queues.forget(name)
  }
}
