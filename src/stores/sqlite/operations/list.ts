import type { JobState } from '../../../values/jobs/records.ts'
import { cursorNumbers, cursorOf } from '../../../values/operations/cursor.ts'
import { numberIn } from '../../../values/operations/data-filter.ts'
import type {
  GroupsRequest,
  JobFilter,
  Listed,
  ListedRecord,
  ListRequest,
} from '../../../values/operations/requests.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import type { GroupRecord } from '../../../values/settings/limits.ts'
import { flag, integer, text } from '../connection/values.ts'
import { isLive, type StoreContext } from '../queues.ts'
import { recordFrom, waitsOf } from './find.ts'

/** Of each state, where its first page begins, by what orders it. */
export const FIRST: Readonly<Record<JobState, number>> = {
  waiting: 10,
  ...{ blocked: Number.MIN_SAFE_INTEGER, scheduled: Number.MIN_SAFE_INTEGER, running: Number.MIN_SAFE_INTEGER },
  ...{ done: Number.MAX_SAFE_INTEGER, dead: Number.MAX_SAFE_INTEGER, cancelled: Number.MAX_SAFE_INTEGER },
}
/** Most jobs that a filter looks at in one call (more if its limit is higher), and in one statement. */
const MOST_LOOKED_AT = DEFAULTS.store.look
const LOOK = 100
/** Of a grouped queue's waiting jobs, which are merged of all lines by each statement. */
export const LOOK_OF_LINES = 1000
/** Data that a filter by text looks at in a call. */
export const MOST_BYTES = 16 * 1024 * 1024

export interface Place {
  key: number
  seq: number
}

export function list(context: StoreContext, request: ListRequest): Listed {
  const { state, limit, after, filter } = request
  const [key = FIRST[state], seq = -1] = cursorNumbers(state, after, [FIRST[state], -1])
  const cursorAt = (at: Place): string => cursorOf(state, at.key, at.seq)
  const jobs: ListedRecord[] = []
  let place: Place = { key, seq }
  let lookedAt = 0
  let bytes = 0
  while (lookedAt < Math.max(limit, MOST_LOOKED_AT) && bytes < MOST_BYTES) {
    const size = filter === undefined ? limit : isInLines(context, request) ? LOOK_OF_LINES : LOOK
    const places = placesAfter(context, request, place, size)
    const looks = filter === undefined ? null : looksAt(context, places, filter)
    for (const at of places) {
      place = at
      const look = looks?.get(at.seq)
      bytes += look?.bytes ?? 0
      if (looks !== null && look?.matches !== true) continue
      const row = context.statements.get('list/job', { seq: at.seq })
      if (row !== undefined) jobs.push({ ...recordFrom(row, waitsOf(context.statements, row)), cursor: cursorAt(at) })
      if (jobs.length === limit) return { jobs, next: cursorAt(at) }
    }
    if (places.length < size) return { jobs, next: null }
    lookedAt += places.length
  }
  return { jobs, next: cursorAt(place) }
}

/** Whether its jobs wait in lines, a line per group. */
export function isInLines({ queues }: StoreContext, { queue, state }: Pick<ListRequest, 'queue' | 'state'>): boolean {
  return state === 'waiting' && queues.find(queue)?.settings.isGrouped === true
}

export function placesAfter(
  context: StoreContext,
  { queue, state, filter }: Pick<ListRequest, 'queue' | 'state' | 'filter'>,
  place: Place,
  limit: number,
): Place[] {
  const statement = isInLines(context, { queue, state }) ? 'lines' : isLive(state) ? state : 'final'
  const values = { queue, state, limit, group: filter?.group ?? null, ...place }
  const rows = context.statements.all(`list/${statement}`, values)
  return rows.map((row) => ({ key: integer(row.key), seq: integer(row.seq) }))
}

export interface Look {
  matches: boolean
  /** How much data was looked at. */
  bytes: number
}

/** By the jobs' places, whether the filter lets them through. */
export function looksAt({ statements }: StoreContext, places: readonly Place[], filter: JobFilter): Map<number, Look> {
  const { group = null, key = null, errorCode = null, errorText = null, text: part = null } = filter
  const { path, value = null } = filter.data ?? {}
  const rows = statements.all('list/matching', {
    ...{ seqs: JSON.stringify(places.map(({ seq }) => seq)), group, key, text: part },
    ...{ error_code: errorCode, error_text: errorText },
    ...{ data_path: path === undefined ? null : JSON.stringify(path), data_value: value },
    data_number: value === null ? null : numberIn(value),
    ...{ pushed_from: filter.pushedFrom ?? null, pushed_before: filter.pushedBefore ?? null },
  })
  return new Map(rows.map((row) => [integer(row.seq), { matches: flag(row.matches), bytes: integer(row.bytes) }]))
}

export function groups({ statements, now }: StoreContext, request: GroupsRequest): GroupRecord[] {
  const { queue, limit, after = null, group = null } = request
  return statements.all('groups/list', { queue, limit, after, group, now }).map((row) => JSON.parse(text(row.record)))
}
