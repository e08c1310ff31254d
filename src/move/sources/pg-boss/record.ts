/** A job of pg-boss's as a job of Millpond's. docs/move.md has the table. */
import { isId } from '../../../values/jobs/ids.ts'
import type { JobError, JobRecord } from '../../../values/jobs/records.ts'
import { foreignId } from '../foreign-id.ts'

/** As the select gives it. Times are milliseconds since 1970, big numbers come as text. */
export interface Row {
  id: string
  name: string
  state: string
  priority: number | null
  retry_limit: number | null
  retry_count: number | null
  policy: string | null
  singleton_key: string | null
  group_id: string | null
  expire_seconds: number | null
  created: number
  due: number
  started: number | null
  completed: number | null
  is_due: boolean
  data: string | null
  output: string | null
}

const DEFAULT_PRIORITY = 4
const HIGHEST_PRIORITY = 9

/** Under these policies a key has one live job at most, as here. */
const KEY_POLICIES: ReadonlySet<string | null> = new Set(['short', 'exclusive'])

/** @param where names the database, for ids */
export function recordOf(row: Row, where: string): JobRecord {
  const isDead = row.state === 'failed'
  const wasTried = row.state !== 'created' && row.started !== null
  const attempt = (row.retry_count ?? 0) + (wasTried ? 1 : 0)
  return {
    id: isId(row.id) ? row.id.toLowerCase() : foreignId(row.created, 'pg-boss', where, row.id),
    ...{ queue: row.name, state: isDead ? 'dead' : row.is_due ? 'waiting' : 'scheduled' },
    // 0 unless set there; a queue rarely has more than a few.
    priority: Math.max(0, Math.min(HIGHEST_PRIORITY, DEFAULT_PRIORITY + (row.priority ?? 0))),
    ...{ attempt, attempts: Math.max(1, attempt, (row.retry_limit ?? 0) + 1), fence: 0 },
    key: isDead || !KEY_POLICIES.has(row.policy) ? null : row.singleton_key,
    group: row.group_id,
    cost: 1,
    timeout: row.expire_seconds === null ? null : row.expire_seconds * 1000,
    ...{ trace: null, pushedAt: row.created, dueAt: row.due, startedAt: row.started },
    ...{ finishedAt: isDead ? (row.completed ?? row.created) : null, worker: null },
    data: { encoding: 'json', body: row.data ?? 'null' },
    ...{ progress: null, result: null },
    error: row.output === null ? null : errorOf(row.output),
  }
}

/** What its handler threw, or anything that it was failed with. */
function errorOf(output: string): JobError {
  const value: unknown = JSON.parse(output)
  const { name, message, stack }: Record<string, unknown> = { ...Object(value) }
  return {
    code: 'HandlerFailed',
    name: typeof name === 'string' ? name.slice(0, 128) : 'Error',
    message: (typeof message === 'string' ? message : output).slice(0, 4000),
    ...(typeof stack === 'string' && { stack: stack.slice(0, 8000) }),
  }
}
