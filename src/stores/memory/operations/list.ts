import type { LinkedList } from '../../../values/collections/linked-list.ts'
import type { JobState } from '../../../values/jobs/records.ts'
import { cursorFields, cursorOf } from '../../../values/operations/cursor.ts'
import { dataHas } from '../../../values/operations/data-filter.ts'
import type {
  GroupsRequest,
  JobFilter,
  Listed,
  ListedRecord,
  ListRequest,
} from '../../../values/operations/requests.ts'
import { DEFAULTS } from '../../../values/settings/contract-defaults.ts'
import type { GroupRecord } from '../../../values/settings/limits.ts'
import { Groups } from '../groups.ts'
import { isFinal, type Job, ORIGIN } from '../job.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'
import type { Cursor } from '../waiting.ts'

/** Jobs that a filter looks at in a call, unless its limit is higher. */
const MOST_LOOKED_AT = DEFAULTS.store.look

export function list({ queues, jobs: known }: MemoryState, request: ListRequest): Listed {
  const { queue: name, state, limit, filter = {} } = request
  const queue = queues.get(name)
  const jobs: ListedRecord[] = []
  if (queue === undefined) return { jobs, next: null }
  const after = placeIn({ jobs: known }, state, request.after)
  let lookedAt = 0
  for (const job of jobsAfter(queue, state, after)) {
    const cursor = cursorAt(job, state)
    if (passes(job, filter)) jobs.push({ ...job.toRecord(), cursor })
    lookedAt++
    if (jobs.length === limit || lookedAt === Math.max(limit, MOST_LOOKED_AT)) return { jobs, next: cursor }
  }
  return { jobs, next: null }
}

export const cursorAt = (job: Job, state: JobState): string =>
  cursorOf(state, keyOf(job, state), numberOf(job, state), job.id)

/** What a cursor holds; null: the list begins. */
export function placeIn(
  { jobs }: Pick<MemoryState, 'jobs'>,
  state: JobState,
  cursor: string | undefined,
): Cursor | null {
  const [key, number, id = ''] = cursor === undefined ? [] : (cursorFields(state, cursor) ?? [])
  return key === undefined ? null : { key: Number(key), number: Number(number), job: jobs.get(id) }
}

export function passes(job: Job, filter: JobFilter): boolean {
  const { group = job.group ?? '', key = job.key, errorCode, errorText, pushedFrom, pushedBefore, text, data } = filter
  const pushedAt = ORIGIN + job.pushedAt
  return (
    (job.group ?? '') === group &&
    job.key === key &&
    (errorCode === undefined || job.error?.code === errorCode) &&
    (errorText === undefined || (job.error?.message.includes(errorText) ?? false)) &&
    pushedAt >= (pushedFrom ?? pushedAt) &&
    pushedAt < (pushedBefore ?? Number.POSITIVE_INFINITY) &&
    (text === undefined || (jsonOf(job)?.includes(text) ?? false)) &&
    (data === undefined || dataHas(jsonOf(job) ?? '', data))
  )
}

const jsonOf = ({ encoding, body }: Job): string | undefined =>
  encoding === 'json' && typeof body === 'string' ? body : undefined

function keyOf(job: Job, state: JobState): number {
  if (state === 'blocked') return 0
  if (state === 'waiting') return job.priority
  if (state === 'scheduled') return job.dueAt
  return state === 'running' ? job.leaseUntil : job.finishedAt
}

const numberOf = (job: Job, state: JobState): number => (isFinal(state) ? job.ending : job.place)

/** Of one state, in its order. */
export function jobsAfter(queue: MemoryQueue, state: JobState, after: Cursor | null): Iterable<Job> {
  switch (state) {
    case 'waiting':
      return queue.waiting.after(after)
    case 'blocked':
      return placedAfter(queue.blocked, after)
    case 'scheduled':
      return sortedAfter(queue.scheduled.all, state, after)
    case 'running':
      return sortedAfter([...queue.running], state, after)
    default:
      return backwards(queue.finished[state], after)
  }
}

/** Of a list by place. */
function* placedAfter(list: LinkedList<Job>, after: Cursor | null): Generator<Job> {
  let job = after?.job?.list === list ? after.job.next : list.first
  while (job !== null && job.place <= (after?.number ?? -1)) job = job.next
  for (; job !== null; job = job.next) yield job
}

function sortedAfter(jobs: readonly Job[], state: JobState, after: Cursor | null): Job[] {
  const order = (job: Job, key: number, number: number) => keyOf(job, state) - key || job.place - number
  const rest = after === null ? [...jobs] : jobs.filter((job) => order(job, after.key, after.number) > 0)
  return rest.sort((a, b) => order(a, keyOf(b, state), b.place))
}

/** The one that ended last comes first. */
function* backwards(list: LinkedList<Job>, after: Cursor | null): Generator<Job> {
  const isThere = after?.job?.list === list && after.job.ending === after.number
  let job = isThere ? (after?.job?.prev ?? null) : list.last
  const isBefore = ({ finishedAt, ending }: Job, { key, number }: Cursor) => finishedAt - key || ending - number
  while (job !== null && after !== null && isBefore(job, after) >= 0) job = job.prev
  for (; job !== null; job = job.prev) yield job
}

export function groups(state: MemoryState, request: GroupsRequest): GroupRecord[] {
  const waiting = state.queues.get(request.queue)?.waiting
  if (!(waiting instanceof Groups)) return []
  const { after } = request
  const wanted = (group: string) => after === undefined || byBytes(after, group) < 0
  const records = waiting.records(state.now(), request.group).filter(({ group }) => wanted(group))
  return records.sort((a, b) => byBytes(a.group, b.group)).slice(0, request.limit)
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
