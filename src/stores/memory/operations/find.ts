import type { GroupsRequest, JobRecord, JobState, ListedRecord, ListRequest } from '../../../store.ts'
import { cursorFields, cursorOf } from '../../../values/cursor.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import type { LinkedList } from '../../../values/linked-list.ts'
import { Groups } from '../groups.ts'
import { isFinal, type Job } from '../job.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'
import type { Place } from '../waiting.ts'

export function find(state: MemoryState, ids: readonly string[]): (JobRecord | null)[] {
  return ids.map((id) => state.jobs.get(id)?.toRecord() ?? null)
}

export function list({ queues, jobs }: MemoryState, request: ListRequest): ListedRecord[] {
  const { queue: name, state, limit } = request
  const queue = queues.get(name)
  if (queue === undefined) return []
  const [key, number, id = ''] = request.after === undefined ? [] : (cursorFields(state, request.after) ?? [])
  const after = key === undefined ? null : { key: Number(key), number: Number(number), job: jobs.get(id) }
  const page: ListedRecord[] = []
  for (const job of jobsAfter(queue, state, after)) {
    if (page.length >= limit) break
    page.push({ ...job.toRecord(), cursor: cursorOf(state, keyOf(job, state), numberOf(job, state), job.id) })
  }
  return page
}

function keyOf(job: Job, state: JobState): number {
  if (state === 'waiting') return job.priority
  if (state === 'scheduled') return job.dueAt
  return state === 'running' ? job.leaseUntil : job.finishedAt
}

const numberOf = (job: Job, state: JobState): number => (isFinal(state) ? job.ending : job.place)

function jobsAfter(queue: MemoryQueue, state: JobState, after: Place | null): Iterable<Job> {
  switch (state) {
    case 'waiting':
      return queue.waiting.after(after)
    case 'scheduled':
      return sortedAfter(queue.scheduled.all, state, after)
    case 'running':
      return sortedAfter([...queue.running], state, after)
    default:
      return backwards(queue.finished[state], after)
  }
}

function sortedAfter(jobs: readonly Job[], state: JobState, after: Place | null): Job[] {
  const order = (job: Job, key: number, number: number) => keyOf(job, state) - key || job.place - number
  const rest = after === null ? [...jobs] : jobs.filter((job) => order(job, after.key, after.number) > 0)
  return rest.sort((a, b) => order(a, keyOf(b, state), b.place))
}

/** The one that ended last comes first. */
function* backwards(list: LinkedList<Job>, after: Place | null): Generator<Job> {
  const isThere = after?.job?.list === list && after.job.ending === after.number
  let job = isThere ? (after?.job?.prev ?? null) : list.last
  while (job !== null && after !== null && job.ending >= after.number) job = job.prev
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

const MAX_AHEAD = 1000

export function ahead(state: MemoryState, id: string): number | null {
  const job = state.jobs.get(id)
  const waiting = job === undefined ? undefined : state.queues.get(job.queue)?.waiting
  if (job?.state !== 'waiting' || waiting === undefined) return null
  let count = 0
  for (const other of waiting instanceof Groups ? waiting.line(job) : waiting.after(null)) {
    if (other === job || count === MAX_AHEAD) break
    count++
  }
  return count
}
