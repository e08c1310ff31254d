/** Lists jobs by state, and groups, over all partitions of a queue. */

import type { JobState } from '../../../values/jobs/records.ts'
import { cursorFields, cursorOf } from '../../../values/operations/cursor.ts'
import type { GroupsRequest, Listed, ListedRecord, ListRequest } from '../../../values/operations/requests.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import type { GroupRecord } from '../../../values/settings/limits.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { groupIndex, type Partition } from '../partition.ts'
import { chunks, MAX_ITEMS_PER_CALL } from '../per-partition.ts'
import { bytesIn, idBytes, leastOf, listBefore, numberIn, numberOrNull, rateIn, textIn, timeOrNull } from '../wire.ts'
import { type Found, foundIn } from './find.ts'

/** Jobs that a filter looks at in a call, unless its limit is higher. */
const MOST_LOOKED_AT = DEFAULTS.store.look

export async function list(context: StoreContext, request: ListRequest): Promise<Listed> {
  context.calls.assertOpen()
  const { queue, state, limit, after, filter } = request
  const partitions = (await context.queues.listed(queue)) ?? (await context.queues.look(queue))
  const mostLookedAt = Math.max(limit, MOST_LOOKED_AT)
  const jobs: ListedRecord[] = []
  let last = after === undefined ? undefined : cursorIn(state, after)
  // What a script does is bounded, so a long list is several.
  for (let lookedAt = 0; ; ) {
    const share = Math.ceil((mostLookedAt - lookedAt) / partitions.length)
    const most = Math.min(filter === undefined ? limit - jobs.length : share, MAX_ITEMS_PER_CALL)
    const { page, end, isShort } = await look(context, partitions, request, most, last)
    for (const found of page.slice(0, limit - jobs.length)) {
      last = cursorAt(found)
      jobs.push({ ...found.record, cursor: cursorText(state, last) })
    }
    if (jobs.length < limit && end === undefined) return { jobs, next: null }
    if (jobs.length < limit) last = end
    lookedAt += most * partitions.length
    const isOver = filter !== undefined && (isShort || lookedAt >= mostLookedAt)
    if (jobs.length === limit || isOver) return { jobs, next: cursorText(state, last) }
  }
}

/**
 * @returns `page`: what was found up to `end`, which is the first point that a partition has looked up to and may go on from; undefined:
 * none goes on. `isShort`: jobs are large, and a partition has looked at fewer
 */
async function look(
  context: StoreContext,
  partitions: readonly Partition[],
  { state, filter }: ListRequest,
  limit: number,
  last: Cursor | undefined,
): Promise<{ page: Found[]; end: Cursor | undefined; isShort: boolean }> {
  const looks = await Promise.all(
    partitions.map(async (partition) => {
      const head = [state, limit, last === undefined ? null : cursorFor(partition, last), filter ?? null]
      const items = last?.partition === partition.index ? [idBytes(last.id)] : []
      const [more, isOnlyLast, ...described] = await callScript(context, 'list', partition, { head, items })
      const found = foundIn(partition, described)
      return { more, end: more === 0 ? undefined : found.at(-1), found: isOnlyLast === 1 ? found.slice(0, -1) : found }
    }),
  )
  const inOrder = inOrderOf(state)
  const page = looks.flatMap(({ found }) => found)
  if (looks.length > 1) page.sort(inOrder)
  const [end] = looks.flatMap((one) => one.end ?? []).sort(inOrder)
  const upToEnd = (found: Found) => end === undefined || found.partition === end.partition || inOrder(found, end) <= 0
  return {
    page: page.filter(upToEnd),
    end: end && cursorAt(end),
    isShort: looks.some(({ more }) => more === 2),
  }
}

const isFinal = (state: JobState): boolean => state === 'done' || state === 'dead' || state === 'cancelled'

/** Over partitions: by time, and jobs of the same time by partition. Each partition gives its own in its own order. */
function inOrderOf(state: JobState): (a: Found, b: Found) => number {
  const sign = isFinal(state) ? -1 : 1
  const byPriority = (a: Found, b: Found) => (state === 'waiting' ? b.record.priority - a.record.priority : 0)
  return (a, b) => byPriority(a, b) || (a.time - b.time) * sign || a.partition.index - b.partition.index
}

/** Where a job stands in a list: the fields of its cursor, in this order. `partition`: its index. */
interface Cursor {
  priority: number
  time: number
  place: number
  partition: number
  id: string
}

const cursorAt = ({ record: { id, priority }, time, place, partition: { index } }: Found): Cursor => {
  return { priority, time, place, partition: index, id }
}

const cursorText = (state: JobState, at: Cursor | undefined): string => cursorOf(state, ...Object.values(at ?? {}))

function cursorIn(state: JobState, cursor: string): Cursor | undefined {
  const [priority, time, place, partition, id = ''] = cursorFields(state, cursor) ?? []
  if (id === '') return undefined
  return { priority: Number(priority), time: Number(time), place: Number(place), partition: Number(partition), id }
}

/** As `list.lua` takes it: [own, priority, place, time, ties]. */
function cursorFor({ index }: Partition, { priority, time, place, partition }: Cursor): unknown[] {
  const own = index === partition
  return [own, priority, own ? place : false, time, index > partition]
}

const PER_GROUP = 5

/** A group is in one partition; only the jobs without one are in several. */
export async function groups(context: StoreContext, request: GroupsRequest): Promise<GroupRecord[]> {
  context.calls.assertOpen()
  const { queue, limit, after, group } = request
  if (group !== undefined && after !== undefined && group <= after) return []
  const partitions = (await context.queues.listed(queue)) ?? (await context.queues.look(queue))
  const home = group === undefined || group === '' ? undefined : groupIndex(partitions.length, group)
  const asked = home === undefined ? partitions : partitions.slice(home, home + 1)
  const pages = await Promise.all(asked.map((partition) => groupsIn(context, partition, request)))
  const [only = []] = pages
  if (pages.length === 1) return only
  const ungrouped = pages.flatMap(([first]) => (first?.group === '' ? [first] : []))
  const named = pages.flat().filter((record) => record.group !== '')
  named.sort((a, b) => Buffer.compare(Buffer.from(a.group), Buffer.from(b.group)))
  return [...(ungrouped.length > 0 ? [ungrouped.reduce(added)] : []), ...named].slice(0, limit)
}

/** The jobs without a group, in two partitions. */
const added = (a: GroupRecord, b: GroupRecord): GroupRecord => ({
  group: a.group,
  limits: a.limits && b.limits && { ...a.limits, running: (a.limits.running ?? 0) + (b.limits.running ?? 0) || null },
  waiting: a.waiting + b.waiting,
  running: a.running + b.running,
  nextStart: leastOf(a.nextStart, b.nextStart),
})

async function groupsIn(
  context: StoreContext,
  partition: Partition,
  { limit, after, group }: GroupsRequest,
): Promise<GroupRecord[]> {
  const records: GroupRecord[] = []
  for (let from: string | null = after ?? null; records.length < limit; ) {
    const most = Math.min(limit - records.length, MAX_ITEMS_PER_CALL)
    const [last, ...items] = await callScript(context, 'groups', partition, { head: [most, from, group ?? null] })
    const page = chunks(items, PER_GROUP).map(([name, own, waiting, running, next]) => ({
      group: textIn(name),
      limits: groupLimitsIn(bytesIn(own), textIn(name) === '' ? partition.count : 1),
      waiting: numberIn(waiting),
      running: numberIn(running),
      nextStart: timeOrNull(next),
    }))
    records.push(...page)
    if (last === null) break
    from = textIn(last)
  }
  return records
}

/** @param partitions that share them */
function groupLimitsIn(bytes: Buffer, partitions: number): GroupRecord['limits'] {
  if (bytes.length === 0) return null
  const [running, rate, weight] = listBefore(bytes).list
  return { running: numberOrNull(running), rate: rateIn(rate, partitions), weight: numberIn(weight) }
}
