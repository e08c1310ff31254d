/**
 * Sweeps all queues: asks each bucket which of its partitions have something to do, and sweeps those, until a limit is reached. So a sweep
 * costs what is due, not how many queues there are. A bucket that does not answer keeps no other from being swept: it is left out until it
 * does, and what it has done then is told with a later answer. A sweep rejects only if nothing was swept, since the answer is the only
 * report of lost claims.
 */
import type { Input } from '../../../store.ts'
import type { Swept } from '../../../values/operations/swept.ts'
import { lookForAwaited } from '../awaited.ts'
import { callAlone } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { nothingFound } from '../found.ts'
import { settleLinks } from '../links.ts'
import { BUCKETS, type Partition, parsedPart, tagOf } from '../partition.ts'
import { inTime } from '../patience.ts'
import { chunks, Failures, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { bytesIn, idText, numberIn, textIn, timeOrNull } from '../wire.ts'
import { type SweptSchedules, sweepSchedules } from './schedules.ts'
import { statsOf } from './stats.ts'
import { forgetWorkers } from './workers.ts'

export async function sweep(context: StoreContext, { limit }: Input<'sweep'>): Promise<Swept> {
  const { calls, found, patience, silentBuckets } = context
  calls.assertOpen()
  void context.evictionWatch.look(calls.client, context.where)
  // Each bucket is the first in turn, so that none waits for ever behind others.
  const first = context.rounds++ % BUCKETS
  const buckets = Array.from({ length: BUCKETS }, (_, i) => (i + first) % BUCKETS)
  const failures = new Failures()
  const tellLater = (reason: unknown): void => {
    found.trouble = { reason }
  }
  /** @returns per call its answer; undefined: it failed, or was left behind */
  const answersOf = async <T>(asked: readonly Promise<T>[], othersAnswered: boolean) => {
    const settled = await inTime(asked, patience.limit, othersAnswered)
    for (const [at, result] of settled.entries()) {
      if (result?.status === 'rejected') failures.note(result.reason)
      else if (result === undefined) asked[at]?.catch(tellLater)
    }
    return settled.map((result) => (result?.status === 'fulfilled' ? { value: result.value } : result && 'failed'))
  }
  const look = async (some: readonly number[], most: number): Promise<Map<number, Due>> => {
    const asked = some.filter((bucket) => !silentBuckets.has(bucket))
    const looks = asked.map((bucket) => patience.timed(dueIn(context, bucket, most)))
    const answers = await answersOf(looks, false)
    const dues = new Map<number, Due>()
    for (const [at, bucket] of asked.entries()) {
      const answer = answers[at]
      if (typeof answer === 'object') dues.set(bucket, answer.value)
      else if (answer === undefined) leaveOut(context, bucket, looks[at])
    }
    return dues
  }
  const dues = await look(buckets, Math.min(limit, MAX_ITEMS_PER_CALL))
  const partitions = [...dues.values()].flatMap((due) => due.partitions)
  for (const partition of partitions) await answersOf([sweepPartition(context, partition, limit)], true)
  const [, told] = await answersOf<SweptSchedules | undefined>([checkList(context), sweepSchedules(context)], true)
  const scheduled = typeof told === 'object' ? told.value : undefined
  if (scheduled?.error !== undefined) failures.note(scheduled.error)
  if (found.trouble !== undefined) failures.note(found.trouble.reason)
  found.trouble = undefined
  const due = scheduled?.due ?? []
  if (found.promoted === 0 && found.expired === 0 && found.lost.length === 0 && due.length === 0) failures.throwFirst()
  const changed = [...new Set(partitions.map(({ bucket }) => bucket))]
  for (const [bucket, due] of await look(changed, 0)) dues.set(bucket, due)
  const times = [...dues.values()].flatMap(({ next }) => next ?? [])
  if (scheduled !== undefined && scheduled.nextAt !== null) times.push(scheduled.nextAt - scheduled.now)
  const { lost, promoted, expired, groups, hasLinks } = found
  Object.assign(found, nothingFound())
  return {
    lost,
    promoted,
    expired,
    more: hasLinks || Math.max(promoted, lost.length, expired, groups) >= limit,
    nextDue: times.length === 0 ? null : Math.min(...times),
    queues: context.queueCount,
    schedules: scheduled === undefined || due.length === 0 ? null : { now: scheduled.now, due },
  }
}

/** Until it has answered. */
function leaveOut({ silentBuckets }: StoreContext, bucket: number, look: Promise<unknown> | undefined): void {
  silentBuckets.add(bucket)
  const over = (): void => void silentBuckets.delete(bucket)
  look?.then(over, over)
}

/** Forgets workers, and puts those queues back into the list that it has lost. */
async function checkList(context: StoreContext): Promise<undefined> {
  const { queues } = context
  await forgetWorkers(context)
  await lookForAwaited(context).catch(() => undefined)
  if (context.queueCount < queues.allKnown().size) await relist(context).catch(() => undefined)
}

/** The ms until the next scheduled job of a bucket is due, and the partitions that have something to do. */
interface Due {
  next: number | null
  partitions: Partition[]
}

async function dueIn({ calls, queues, prefix, now }: StoreContext, bucket: number, limit: number): Promise<Due> {
  const tag = tagOf(prefix, bucket)
  const [next, ...parts] = await calls.script('due', { tag, keys: [`${tag}:due`, `${tag}:ends`] }, [now() ?? '', limit])
  const partitions = parts.map((part) => {
    const { queue, index } = parsedPart(textIn(part))
    return queues.partition(queue, index)
  })
  return { next: timeOrNull(next), partitions }
}

async function sweepPartition(context: StoreContext, partition: Partition, limit: number): Promise<void> {
  const { queue } = partition
  const { found } = context
  const { local } = context.notifier
  let full = true
  while (full) {
    const done = [found.promoted, found.lost.length, found.expired, found.groups]
    const limits = done.map((count) => Math.min(limit - count, MAX_ITEMS_PER_CALL))
    const { answer, links } = await callAlone(context, 'sweep', partition, { head: limits })
    const [promoted, expired, groups, more, ...items] = answer
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
    for (const { id, state } of lost) if (state === 'dead') local.ring('finished', queue, id)
    if (promoted !== 0 || lost.some(({ state }) => state === 'waiting')) local.ring('work', queue)
    if (links.length > 0 && !found.hasLinks) {
      const { isLeft, failures } = await settleLinks(context, partition, links)
      found.hasLinks = isLeft
      failures.throwFirst()
    }
    // 1: jobs are large, and some were left to another call.
    full = more === 1 || counts.includes(MAX_ITEMS_PER_CALL)
  }
}

/** The list of queues has lost some: those that hold jobs get back into it, the others are forgotten. */
async function relist(context: StoreContext): Promise<void> {
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
