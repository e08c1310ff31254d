import type { NewJob, PushOutcome } from '../../../store.ts'
import { NEVER } from '../../../values/once.ts'
import { integer, text, type Value } from '../connection/values.ts'
import { isResult } from '../errors.ts'
import { dueOf, isMore, mark, meet, onceColumns, takeKey } from '../once.ts'
import type { Queue, StoreContext } from '../queues.ts'
import { type JobList, jobsIn, type PackedPush } from '../wire.ts'
import { updateOne } from './update.ts'

/** @returns null: all were pushed */
export function push(context: StoreContext, { jobs }: PackedPush): PushOutcome[] | null {
  if (!('ids' in jobs)) return jobs.map((job) => pushOne(context, job))
  return pushList(context, jobs) ? null : jobsIn(jobs).map((job) => pushOne(context, job))
}

/** False, and nothing is done, where not all can be stored: which ones can is only seen one by one. */
function pushList(context: StoreContext, { count, job, ids, bodies }: JobList): boolean {
  const queue = context.queues.findOrCreate(job.queue)
  if (queue.room < count) return false
  const row = columnsOf(context, job)
  try {
    context.statements.run('push/insert_list', { ...row, ids, bodies })
  } catch (error) {
    if (isResult(error, 'CONSTRAINT', 19)) return false
    throw error
  }
  queue.pushed(row.state, count, row.due_at - row.now)
  return true
}

function pushOne(context: StoreContext, job: NewJob): PushOutcome {
  const { statements, queues } = context
  const { id, key, data } = job
  const queue = queues.findOrCreate(job.queue)
  if (isMore(queue, job)) return pushMore(context, queue, job)
  if (queue.room > 0) {
    const row = columnsOf(context, job)
    if (statements.run('push/insert', { ...row, id, key, encoding: data.encoding, data: data.body }) === 1) {
      queue.pushed(row.state, 1, row.due_at - row.now)
      return { status: 'pushed', id }
    }
  }
  // A repeated push must not be refused for want of room: its job is in already.
  const existing = statements.get('push/existing', { id, queue: queue.name, key })
  return existing === undefined ? { status: 'full', id } : { status: 'existing', id: text(existing.id) }
}

/** A job whose key may be remembered, replace another one, or make it follow. */
function pushMore(context: StoreContext, queue: Queue, job: NewJob): PushOutcome {
  const { statements } = context
  const { id, key, data, once } = job
  if (statements.get('push/existing', { id, queue: queue.name, key: null }) !== undefined) {
    return { status: 'existing', id }
  }
  const met = meet(context, job, (id, runAt) => updateOne(context, { id, data, runAt }))
  if (met !== undefined && met !== 'follows') return met
  if (queue.room <= 0) return { status: 'full', id }
  if (once?.unique !== undefined || met === 'follows') mark(context, queue)
  const row = columnsOf(context, job, met === 'follows')
  takeKey(context, queue, met === 'follows' ? null : key)
  const columns = onceColumns(once?.unique, met === 'follows' ? dueOf(job, row.now, row.now) : null)
  statements.run('once/insert', { ...row, ...columns, id, key, encoding: data.encoding, data: data.body })
  queue.pushed(row.state, 1, row.due_at - row.now)
  return { status: 'pushed', id }
}

function columnsOf({ statements, queues, now }: StoreContext, pushed: NewJob, follows = false) {
  const { queue, priority, group, ...job } = pushed
  const { settings } = queues.findOrCreate(queue)
  const due = dueOf(pushed, now, now)
  const state = due <= now && !follows ? ('waiting' as const) : ('scheduled' as const)
  const place = { queue, priority, group }
  let line: number | null = null
  if (settings.isGrouped && state === 'waiting') {
    // The group is told that it gets a job.
    statements.run('push/touch', place)
    line = integer(statements.get('push/line', place)?.id)
  }
  return {
    ...{ ...place, line, state, now },
    due_at: follows ? NEVER : due,
    cost: job.cost ?? 1,
    trace: job.trace,
    attempts: job.attempts ?? settings.attempts,
    timeout: job.timeout ?? settings.timeout,
  } satisfies Record<string, Value>
}

/** Inside a transaction that others write in, too: an error leaves nothing of the push behind, and theirs as it was. */
export function pushWithin(context: StoreContext, pushed: PackedPush): PushOutcome[] | null {
  const { statements, queues } = context
  queues.write()
  statements.run('savepoint/begin')
  try {
    const outcomes = push(context, pushed)
    queues.write()
    statements.run('savepoint/end')
    return outcomes
  } catch (error) {
    queues.forget()
    try {
      statements.run('savepoint/undo')
      statements.run('savepoint/end')
    } catch {
      // Some errors make SQLite roll back everything, savepoints too; the first error is the one to tell.
    }
    throw error
  }
}
