import type { Encoded, Input, JobRecord, RestoreOutcome } from '../../../store.ts'
import { withLines } from '../../../values/job-log.ts'
import type { StoreContext } from '../queues.ts'

export function restore(context: StoreContext, { records }: Input<'restore'>): RestoreOutcome[] {
  return records.map((record) => restoreOne(context, record))
}

function restoreOne({ statements, queues }: StoreContext, record: JobRecord): RestoreOutcome {
  const { pushedAt, dueAt, startedAt, finishedAt, data, progress, result, error, log, ...columns } = record
  const queue = queues.findOrCreate(record.queue)
  const row = {
    ...columns,
    ...{ pushed_at: pushedAt, due_at: dueAt, started_at: startedAt, finished_at: finishedAt },
    ...{ encoding: data.encoding, data: data.body },
    ...{ progress_encoding: encodingOf(progress), progress: bodyOf(progress) },
    ...{ result_encoding: encodingOf(result), result: bodyOf(result) },
    error: error === null ? null : JSON.stringify(error),
    log: log === undefined ? null : JSON.stringify(withLines([], log)),
  }
  if (statements.run('restore/restore', row) === 0) return 'existing'
  queue.move(null, record.state)
  if (record.state === 'waiting') queues.lineUp(queue.name)
  return 'restored'
}

const encodingOf = (encoded: Encoded | null) => encoded?.encoding ?? null
const bodyOf = (encoded: Encoded | null) => encoded?.body ?? null
