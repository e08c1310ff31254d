import type { Encoded, Input, JobRecord, RestoreOutcome } from '../../../store.ts'
import { withLines } from '../../../values/job-log.ts'
import { NEVER } from '../../../values/once.ts'
import { hasHolder, mark, onceColumns, restoreKey } from '../once.ts'
import type { StoreContext } from '../queues.ts'

export function restore(context: StoreContext, { records }: Input<'restore'>): RestoreOutcome[] {
  return records.map((record) => restoreOne(context, record))
}

function restoreOne(context: StoreContext, record: JobRecord): RestoreOutcome {
  const { statements, queues } = context
  const {
    pushedAt,
    dueAt,
    startedAt,
    finishedAt,
    data,
    progress,
    result,
    error,
    log,
    unique,
    follows,
    after: _,
    ...columns
  } = record
  const queue = queues.findOrCreate(record.queue)
  if (unique !== undefined || follows) mark(context, queue)
  const isFollower = follows === true && record.state === 'scheduled' && hasHolder(context, record)
  const row = {
    ...columns,
    ...{ pushed_at: pushedAt, due_at: dueAt, started_at: startedAt, finished_at: finishedAt },
    ...{ encoding: data.encoding, data: data.body },
    ...{ progress_encoding: encodingOf(progress), progress: bodyOf(progress) },
    ...{ result_encoding: encodingOf(result), result: bodyOf(result) },
    error: error === null ? null : JSON.stringify(error),
    log: log === undefined ? null : JSON.stringify(withLines([], log)),
    ...onceColumns(unique, isFollower ? dueAt : null),
    ...(isFollower && { due_at: NEVER }),
  }
  if (statements.run('restore/restore', row) === 0) return 'existing'
  queue.move(null, record.state)
  restoreKey(context, queue, record, isFollower)
  if (record.state === 'waiting') queues.lineUp(queue.name)
  return 'restored'
}

const encodingOf = (encoded: Encoded | null) => encoded?.encoding ?? null
const bodyOf = (encoded: Encoded | null) => encoded?.body ?? null
