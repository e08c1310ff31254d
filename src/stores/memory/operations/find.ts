import type { GroupsRequest, JobRecord, ListRequest } from '../../../store.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import { Groups } from '../groups.ts'
import type { Job } from '../job.ts'
import { byDue, byLease, type MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function find(state: MemoryState, ids: readonly string[]): (JobRecord | null)[] {
  return ids.map((id) => state.jobs.get(id)?.toRecord() ?? null)
}

export function list({ queues, jobs }: MemoryState, request: ListRequest): JobRecord[] {
  const queue = queues.get(request.queue)
  const cursor = request.after === undefined ? null : jobs.get(request.after)
  // A page after a job that has gone, has moved on to another state, or is of another queue has no place to begin.
  if (queue === undefined || cursor === undefined) return []
  if (cursor !== null && (cursor.state !== request.state || cursor.queue !== request.queue)) return []
  const page: JobRecord[] = []
  for (const job of jobsAfter(queue, request.state, cursor)) {
    if (page.length >= request.limit) break
    page.push(job.toRecord())
  }
  return page
}

function jobsAfter(queue: MemoryQueue, state: ListRequest['state'], cursor: Job | null): Iterable<Job> {
  switch (state) {
    case 'waiting':
      return queue.waiting.after(cursor)
    case 'scheduled':
      return sortedAfter(queue.scheduled.all, byDue, cursor)
    case 'running':
      return sortedAfter([...queue.running], byLease, cursor)
    default:
      return backwards(cursor === null ? queue.finished[state].last : cursor.prev)
  }
}

function sortedAfter(jobs: readonly Job[], before: (a: Job, b: Job) => boolean, cursor: Job | null): Job[] {
  const rest = cursor === null ? [...jobs] : jobs.filter((job) => before(cursor, job))
  return rest.sort((a, b) => (before(a, b) ? -1 : 1))
}

function* backwards(from: Job | null): Generator<Job> {
  for (let job = from; job !== null; job = job.prev) yield job
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
