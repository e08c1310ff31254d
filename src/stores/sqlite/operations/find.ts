import type { GroupsRequest, JobRecord, JobState, ListedRecord, ListRequest } from '../../../store.ts'
import { cursorNumbers, cursorOf } from '../../../values/cursor.ts'
import type { GroupRecord } from '../../../values/limits.ts'
import { jobErrorFromJson } from '../../job-error.ts'
import { integer, integerOrNull, type Row, stateFrom, text, textOrNull } from '../connection/values.ts'
import type { Context } from '../queues.ts'
import { encodedFrom } from '../wire.ts'

export function find({ statements }: Context, ids: readonly string[]): (JobRecord | null)[] {
  return ids.map((id) => {
    const row = statements.get('find/find', { id })
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

const FINAL: [string, number] = ['finished_at', Number.MAX_SAFE_INTEGER]
/** The column by which a state is listed, and where its first page begins. */
const ORDERS: Readonly<Record<JobState, [column: string, first: number]>> = {
  waiting: ['priority', 10],
  scheduled: ['due_at', Number.MIN_SAFE_INTEGER],
  running: ['lease_until', Number.MIN_SAFE_INTEGER],
  ...{ done: FINAL, dead: FINAL, cancelled: FINAL },
}

export function list({ statements, queues }: Context, request: ListRequest): ListedRecord[] {
  const { queue, state, limit, after } = request
  const [column, first] = ORDERS[state]
  const [key = first, seq = -1] = cursorNumbers(state, after, [first, -1])
  const isGrouped = state === 'waiting' && queues.find(queue)?.settings.isGrouped
  const isLive = state === 'waiting' || state === 'scheduled' || state === 'running'
  const name = isGrouped ? 'limits/waiting' : `list/${isLive ? state : 'final'}`
  const rows = statements.all(name, { queue, state, limit, key, seq })
  return rows.map((row) => ({ ...recordFrom(row), cursor: cursorOf(state, integer(row[column]), integer(row.seq)) }))
}

export function groups({ statements, now }: Context, request: GroupsRequest): GroupRecord[] {
  const { queue, limit, after = null, group = null } = request
  return statements.all('groups/list', { queue, limit, after, group, now }).map((row) => JSON.parse(text(row.record)))
}

export function ahead({ statements }: Context, id: string): number | null {
  return integerOrNull(statements.get('ahead/ahead', { id })?.ahead)
}
