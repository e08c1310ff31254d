import type { GroupsRequest, JobRecord, ListRequest } from '../../../store.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import { jobErrorFromJson } from '../../job-error.ts'
import { integer, integerOrNull, type Row, stateFrom, text, textOrNull } from '../connection/values.ts'
import { type Context, QueueChanges } from '../queues.ts'
import { encodedFrom } from '../wire.ts'

export function find({ statements }: Context, ids: readonly string[]): (JobRecord | null)[] {
  return ids.map((id) => {
    const row = statements.get('find/find').get({ id })
    return row === undefined ? null : recordFrom(row)
  })
}

const encodedOrNull = (encoding: unknown, body: unknown) => (encoding === null ? null : encodedFrom(encoding, body))

function recordFrom(row: Row): JobRecord {
  return {
    id: text(row.id),
    queue: text(row.queue),
    state: stateFrom(row.state),
    priority: integer(row.priority),
    attempt: integer(row.attempt),
    attempts: integer(row.attempts),
    key: textOrNull(row.key),
    group: textOrNull(row.group),
    cost: integer(row.cost),
    timeout: integerOrNull(row.timeout),
    trace: textOrNull(row.trace),
    pushedAt: integer(row.pushed_at),
    dueAt: integer(row.due_at),
    startedAt: integerOrNull(row.started_at),
    finishedAt: integerOrNull(row.finished_at),
    worker: textOrNull(row.worker),
    data: encodedFrom(row.encoding, row.data),
    progress: encodedOrNull(row.progress_encoding, row.progress),
    result: encodedOrNull(row.result_encoding, row.result),
    error: row.error === null ? null : jobErrorFromJson(row.error),
  }
}

/** Before every job in ascending order; its negative is after every one, for the newest first. */
const FIRST = -Number.MAX_SAFE_INTEGER
const FIRST_PAGE = { seq: FIRST, priority: -FIRST, due_at: FIRST, lease_until: FIRST, finished_at: -FIRST }

/** The column that orders each state's list, before `seq`; the other states are ordered by `finished_at`. */
const ORDERED_BY = { waiting: 'priority', scheduled: 'due_at', running: 'lease_until' } as const

export function list({ statements }: Context, { queue, state, limit, after }: ListRequest): JobRecord[] {
  const cursor: Row | undefined =
    after === undefined ? FIRST_PAGE : statements.get('list/cursor').get({ id: after, queue, state })
  if (cursor === undefined) return []
  const page = { queue, state, limit, seq: integer(cursor.seq) }
  const isLive = state === 'waiting' || state === 'scheduled' || state === 'running'
  const column = isLive ? ORDERED_BY[state] : 'finished_at'
  const row = state === 'waiting' ? statements.get('counts/queue').get({ queue }) : undefined
  const isGrouped = row !== undefined && new QueueChanges(queue, row).limits.grouped
  const name = isGrouped ? 'limits/waiting' : `list/${isLive ? state : 'final'}`
  const rows = statements.get(name).all({ ...page, [column]: integer(cursor[column]) })
  return rows.map(recordFrom)
}

export function groups({ statements, now }: Context, request: GroupsRequest): GroupRecord[] {
  const { queue, limit, after = null, group = null } = request
  const rows = statements.get('groups/list').all({ queue, limit, after, group })
  return rows.map((row): GroupRecord => {
    const start = integerOrNull(row.start_at)
    return {
      group: text(row.name),
      limits: row.limits === null ? null : JSON.parse(text(row.limits)),
      waiting: integer(row.waiting),
      running: integer(row.running),
      nextStart: start === null ? null : Math.max(0, start - now),
    }
  })
}

export function ahead({ statements }: Context, id: string): number | null {
  return integerOrNull(statements.get('ahead/ahead').get({ id })?.ahead)
}
