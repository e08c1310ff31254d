/** Lists a queue's jobs by state, and its groups. */
import type { JobState } from '../../../values/jobs/records.ts'
import { cursorFields, cursorOf } from '../../../values/operations/cursor.ts'
import type { GroupsRequest, Listed, ListedRecord, ListRequest } from '../../../values/operations/requests.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import type { GroupRecord } from '../../../values/settings/limits.ts'
import { chunks, MAX_ITEMS_PER_CALL } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, idBytes, listBefore, numberIn, numberOrNull, rateIn, textIn, timeOrNull } from '../wire.ts'
import { type Found, foundIn } from './find.ts'

/** Jobs that a filter looks at in a call, unless its limit is higher. */
const MOST_LOOKED_AT = DEFAULTS.store.look
/** What list.lua answers where the list ends, and where it has looked at fewer jobs than it may, since they are large. */
const END = 0
const SHORT = 2

export async function list(context: StoreContext, request: ListRequest): Promise<Listed> {
  const { queue, state, limit, after, filter } = request
  const mostLookedAt = Math.max(limit, MOST_LOOKED_AT)
  const jobs: ListedRecord[] = []
  let last = after === undefined ? undefined : placeIn(state, after)
  // What a script does is bounded, so a long list is several.
  for (let lookedAt = 0; ; ) {
    const most = Math.min(filter === undefined ? limit - jobs.length : mostLookedAt - lookedAt, MAX_ITEMS_PER_CALL)
    const { head, items } = afterArgs(last)
    const answer = await callScript(context, 'list', { queue, head: [state, most, head, filter ?? null], items })
    const [more, isOnlyLast, ...described] = answer
    const found = foundIn(described)
    const end = found.at(-1)
    for (const each of (isOnlyLast === 1 ? found.slice(0, -1) : found).slice(0, limit - jobs.length)) {
      last = placeOf(each)
      jobs.push({ ...each.record, cursor: cursorText(state, last) })
    }
    if (jobs.length < limit && more === END) return { jobs, next: null }
    if (jobs.length < limit && end !== undefined) last = placeOf(end)
    lookedAt += most
    const isOver = filter !== undefined && (more === SHORT || lookedAt >= mostLookedAt)
    if (jobs.length === limit || isOver) return { jobs, next: last === undefined ? null : cursorText(state, last) }
  }
}

/** Where a job stands in a list: the fields of its cursor, in this order. */
export interface Place {
  priority: number
  place: number
  time: number
  id: string
}

const placeOf = ({ record: { id, priority }, place, time }: Found): Place => ({ priority, place, time, id })

export const cursorText = (state: JobState, { priority, place, time, id }: Place): string =>
  cursorOf(state, priority, place, time, id)

export function placeIn(state: JobState, cursor: string): Place | undefined {
  const [priority, place, time, id = ''] = cursorFields(state, cursor) ?? []
  return id === '' ? undefined : { priority: Number(priority), place: Number(place), time: Number(time), id }
}

/** As list.lua and bulk.lua take it. */
export const afterArgs = (last: Place | undefined) =>
  last === undefined
    ? { head: null, items: [] }
    : { head: [last.priority, last.place, last.time], items: [idBytes(last.id)] }

const PER_GROUP = 5

export async function groups(context: StoreContext, request: GroupsRequest): Promise<GroupRecord[]> {
  const { queue, limit, after, group } = request
  if (group !== undefined && after !== undefined && group <= after) return []
  const records: GroupRecord[] = []
  for (let from: string | null = after ?? null; records.length < limit; ) {
    const head = [Math.min(limit - records.length, MAX_ITEMS_PER_CALL), from, group ?? null]
    const [last, ...items] = await callScript(context, 'groups', { queue, head })
    const page = chunks(items, PER_GROUP).map(([name, own, waiting, running, next]) => ({
      group: textIn(name),
      limits: groupLimitsIn(bytesIn(own)),
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

function groupLimitsIn(bytes: Buffer): GroupRecord['limits'] {
  if (bytes.length === 0) return null
  const [running, rate, weight] = listBefore(bytes).list
  return { running: numberOrNull(running), rate: rateIn(rate), weight: numberIn(weight) }
}
