import type { Input } from '../../../store.ts'
import { withLines } from '../../../values/jobs/job-log.ts'
import { NEVER } from '../../../values/jobs/once.ts'
import type { Encoded, JobRecord } from '../../../values/jobs/records.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import { awaitJob, come, lastSeq, link, type Standing, standingOf } from '../graphs.ts'
import { addEntries } from '../journal.ts'
import { hasHolder, mark, onceColumns, restoreKey } from '../once.ts'
import { isLive, type StoreContext } from '../queues.ts'
import { Endings } from '../settle.ts'

export function restore(context: StoreContext, { records }: Input<'restore'>): RestoreOutcome[] {
  const endings = new Endings(context)
  const outcomes = records.map((record) => restoreOne(context, record, endings))
  endings.settle()
  return outcomes
}

function restoreOne(context: StoreContext, record: JobRecord, endings: Endings): RestoreOutcome {
  if (record.state !== 'blocked') return store(context, record, endings)
  const { id, queue, key, after = [], onDead = 'cancel' } = record
  if (context.statements.get('push/existing', { id, queue, key }) !== undefined) return 'existing'
  const standing = standingOf(context, { after, onDead }, { unknown: (parent) => awaitJob(context, parent) })
  if (typeof standing === 'string') throw new Error('millpond: every unknown parent is awaited')
  if (standing.isBlocked) return store(context, record, endings, standing)
  const dueAt = Math.max(context.now, record.dueAt)
  return store(context, { ...record, dueAt, state: dueAt > context.now ? 'scheduled' : 'waiting' }, endings, standing)
}

function store(context: StoreContext, record: JobRecord, endings: Endings, standing?: Standing): RestoreOutcome {
  const { statements, queues } = context
  const { after: _, waitsFor: _open, onDead: _mode, journal: _count, entries = [], parked = null, ...kept } = record
  const { pushedAt, dueAt, startedAt, finishedAt, data, progress, result, error, log, unique, follows, ...columns } =
    kept
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
    parked,
  }
  if (statements.run('restore/restore', row) === 0) return 'existing'
  queue.move(null, record.state)
  if (entries.length > 0) addEntries(statements, lastSeq(context), entries)
  restoreKey(context, queue, record, isFollower)
  come(context, queue, record.id)
  if (standing !== undefined) link(context, queue, standing, endings)
  if (record.state === 'waiting') queues.lineUp(queue.name)
  if (!isLive(record.state)) {
    // Jobs may have waited for it.
    endings.look(queue, [record.id])
    endings.ended(record.id, record.state, true)
  }
  return 'restored'
}

const encodingOf = (encoded: Encoded | null) => encoded?.encoding ?? null
const bodyOf = (encoded: Encoded | null) => encoded?.body ?? null
