import type { NewJob, PushOutcome } from '../../../store.ts'
import type { Statements } from '../connection/statements.ts'
import { integer, text, type Value } from '../connection/values.ts'
import { isResult } from '../errors.ts'
import type { Context, QueueChanges } from '../queues.ts'
import { type JobList, jobsIn, type NotPushed } from '../wire.ts'

export function push(context: Context, jobs: JobList | readonly NewJob[]): NotPushed {
  if (!('ids' in jobs)) return pushEach(context, jobs)
  return pushList(context, jobs) ? [] : pushEach(context, jobsIn(jobs))
}

/** False, and nothing is done, where not all can be stored: which ones can is only seen one by one. */
function pushList(context: Context, { count, job, ids, bodies }: JobList): boolean {
  const { statements, queues } = context
  const queue = queues.findOrCreate(job.queue)
  if (queue.room < count) return false
  const row = columnsOf(context, job, queue)
  try {
    statements.get('push/insert_list').run({ ...row, ids, bodies })
  } catch (error) {
    if (isResult(error, 'CONSTRAINT', 19)) return false
    throw error
  }
  queue.move(null, row.state, count)
  return true
}

function pushEach(context: Context, jobs: readonly NewJob[]): NotPushed {
  const { statements, queues } = context
  const insert = statements.get('push/insert')
  const others: NotPushed = []
  const existing = ({ id, queue, key }: NewJob): PushOutcome | null => {
    const row = statements.get('push/existing').get({ id, queue, key })
    return row === undefined ? null : { status: 'existing', id: text(row.id) }
  }
  for (const [at, job] of jobs.entries()) {
    const { id, key, data } = job
    const queue = queues.findOrCreate(job.queue)
    if (queue.room <= 0) {
      // A repeated push must not be refused for want of room: its job is in already.
      others.push({ at, outcome: existing(job) ?? { status: 'full', id } })
      continue
    }
    const row = columnsOf(context, job, queue)
    if (insert.run({ ...row, id, key, encoding: data.encoding, data: data.body }) === 1) {
      queue.move(null, row.state)
      continue
    }
    const outcome = existing(job)
    if (outcome === null) throw new Error(`millpond: job ${id} was not stored, and nothing stands in its way`)
    others.push({ at, outcome })
  }
  return others
}

function columnsOf({ statements, now }: Context, job: NewJob, { settings, limits }: QueueChanges) {
  const due = Math.max(now, job.runAt ?? now + job.delay)
  const state = due <= now ? ('waiting' as const) : ('scheduled' as const)
  return {
    queue: job.queue,
    priority: job.priority,
    group: job.group,
    cost: job.cost ?? 1,
    line: limits.grouped && state === 'waiting' ? lineOf(statements, job) : null,
    trace: job.trace,
    now,
    state,
    due_at: due,
    attempts: job.attempts ?? settings.attempts,
    timeout: job.timeout ?? settings.timeout,
  } satisfies Record<string, Value>
}

/** The group's number. The group is told that it gets a job. */
function lineOf(statements: Statements, { queue, group, priority }: NewJob): number {
  const parameters = { queue, group, priority }
  statements.get('push/touch').run(parameters)
  return integer(statements.get('push/line').get(parameters)?.id)
}

/** Inside a transaction that others write in, too: an error leaves nothing of the push behind, and theirs as it was. */
export function pushWithin(context: Context, jobs: JobList | readonly NewJob[]): NotPushed {
  const { statements, queues } = context
  let others: NotPushed = []
  queues.write()
  try {
    statements.inSavepoint(() => {
      others = push(context, jobs)
      queues.write()
      return true
    })
  } finally {
    queues.forget()
  }
  return others
}
