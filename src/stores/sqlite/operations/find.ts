import type { Input } from '../../../store.ts'
import type { JobOutcome, JobRecord } from '../../../values/jobs/records.ts'
import { firstOutcomes } from '../../../values/operations/outcomes.ts'
import { storedErrorFromJson } from '../../stored-error.ts'
import type { Statements } from '../connection/statements.ts'
import { integer, integerOrNull, type Row, stateFrom, text, textOrNull } from '../connection/values.ts'
import { logFrom } from '../job-log.ts'
import { stepsFrom } from '../journal.ts'
import { onceFrom } from '../once.ts'
import type { StoreContext } from '../queues.ts'
import { encodedFrom } from '../wire.ts'

export function find({ statements }: StoreContext, { ids }: Input<'find'>): (JobRecord | null)[] {
  return ids.map((id) => {
    const row = statements.get('find/find', { id })
    return row === undefined ? null : recordFrom(finished(statements, row), waitsOf(statements, row))
  })
}

/** Of a job that is held for its children, the time is elsewhere. */
function finished(statements: Statements, row: Row): Row {
  const { seq = null, state, finished_at } = row
  if (state !== 'done' || finished_at !== null) return row
  return { ...row, ...statements.get('graphs/held_at', { seq }) }
}

export function outcomes({ statements }: StoreContext, { ids }: Input<'outcomes'>): (JobOutcome | null)[] {
  return firstOutcomes(ids, (id) => {
    const row = statements.get('outcomes/outcome', { id })
    return row === undefined ? null : outcomeFrom(row)
  })
}

const outcomeFrom = (row: Row): JobOutcome => ({
  ...{ id: text(row.id), queue: text(row.queue), state: stateFrom(row.state) },
  ...{ attempt: integer(row.attempt), attempts: integer(row.attempts) },
  result: encodedOrNull(row.result_encoding, row.result),
  error: row.error === null ? null : storedErrorFromJson(row.error),
})

const encodedOrNull = (encoding: unknown, body: unknown) => (encoding === null ? null : encodedFrom(encoding, body))

/** Of a blocked job: for how many jobs it waits. */
export function waitsOf(statements: Statements, { seq = null, state }: Row): Pick<JobRecord, 'waitsFor' | 'onDead'> {
  if (state !== 'blocked') return {}
  const { links, open } = statements.get('graphs/waits', { seq }) ?? {}
  return { waitsFor: integer(links), ...(open === 2 && { onDead: 'run' }) }
}

export function recordFrom(row: Row, waits: Pick<JobRecord, 'waitsFor' | 'onDead'>): JobRecord {
  return {
    ...outcomeFrom(row),
    priority: integer(row.priority),
    fence: integer(row.fence),
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
    ...logFrom(row.log),
    ...onceFrom(row),
    ...stepsFrom(row),
    ...waits,
  }
}

export function ahead({ statements }: StoreContext, { id }: Input<'ahead'>): number | null {
  return integerOrNull(statements.get('ahead/ahead', { id })?.ahead)
}
