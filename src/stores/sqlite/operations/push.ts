import { NEVER } from '../../../values/jobs/once.ts'
import type { NewJob, PushOutcome } from '../../../values/jobs/records.ts'
import { hasParents, isRefused, standsFor, waits } from '../../jobs.ts'
import { integer, text, type Value } from '../connection/values.ts'
import { isResult } from '../errors.ts'
import { awaitsAny, come, lastSeq, link, listStanding, markGraphs, openOf, standingOf } from '../graphs.ts'
import { dueOf, isMore, mark, meet, onceColumns, takeKey } from '../once.ts'
import type { Queue, StoreContext } from '../queues.ts'
import { Endings } from '../settle.ts'
import { type JobList, jobsIn, type ListLinks, type PackedPush } from '../wire.ts'
import { updateOne } from './update.ts'

/** @returns null: all were pushed */
export function push(context: StoreContext, { jobs, whole = false }: PackedPush): PushOutcome[] | null {
  if ('ids' in jobs && pushList(context, jobs)) return null
  const each = 'ids' in jobs ? jobsIn(jobs) : jobs
  return whole ? pushWhole(context, each) : pushEach(context, each)
}

interface Call {
  /** The ids of jobs that stand for others: those were not stored for them. */
  stands: Map<string, string>
  endings: Endings
}

function pushEach(context: StoreContext, jobs: readonly NewJob[]): PushOutcome[] {
  const call: Call = { stands: new Map(), endings: new Endings(context) }
  const outcomes = jobs.map((job) => {
    const outcome = pushOne(context, job, call)
    if (standsFor(outcome, job)) call.stands.set(job.id, outcome.id)
    return outcome
  })
  call.endings.settle()
  return outcomes
}

/** All of them or none. */
function pushWhole(context: StoreContext, jobs: readonly NewJob[]): PushOutcome[] {
  // As by a push that stores nothing, the queues are there afterwards.
  for (const name of new Set(jobs.map(({ queue }) => queue))) context.queues.findOrCreate(name)
  const outcomes = undoing(
    context,
    () => pushEach(context, jobs),
    (pushed) => pushed.some(isRefused),
  )
  if (!outcomes.isUndone) return outcomes.output
  const pushed = new Set(outcomes.output.flatMap(({ status, id }) => (status === 'pushed' ? [id] : [])))
  return outcomes.output.map((outcome, at): PushOutcome => {
    const { status, id } = outcome
    // A job of the call that has the key or id of another of its jobs is not there either.
    const isUndone = status === 'pushed' || status === 'replaced' || (status === 'existing' && pushed.has(id))
    return isUndone ? { status: 'withheld', id: jobs[at]?.id ?? id } : outcome
  })
}

/** False, and nothing is done, where not all can be stored: which ones can is only seen one by one. */
function pushList(context: StoreContext, list: JobList): boolean {
  const { count, job, links } = list
  const queue = context.queues.findOrCreate(job.queue)
  if (queue.room < count || awaitsAny(context, queue)) return false
  const row = columnsOf(context, job)
  if (links !== undefined) return pushLinked(context, queue, list, { row, links })
  if (!insertList(context, list, row)) return false
  queue.pushed(row.state, count, row.due_at - row.now)
  return true
}

function insertList({ statements }: StoreContext, { ids, bodies }: JobList, row: Columns): boolean {
  try {
    statements.run('push/insert_list', { ...row, ids, bodies })
    return true
  } catch (error) {
    if (isResult(error, 'CONSTRAINT', 19)) return false
    throw error
  }
}

function pushLinked(
  context: StoreContext,
  queue: Queue,
  list: JobList,
  { row, links }: { row: Columns; links: ListLinks },
): boolean {
  const { statements, queues } = context
  const { count, job } = list
  const standing = listStanding(context, links, job)
  if (standing === undefined) return false
  const blocked = standing.waits.reduce((sum, waits) => sum + waits, 0)
  // The others are few.
  const isMostlyBlocked = blocked * 2 > count
  const stored: Columns = isMostlyBlocked ? { ...row, state: 'blocked', line: null } : row
  if (!insertList(context, list, stored)) return false
  const first = lastSeq(context) - count + 1
  const others: number[] = []
  for (const [at, waits] of standing.waits.entries()) if ((waits === 1) !== isMostlyBlocked) others.push(first + at)
  if (others.length > 0) {
    statements.run(isMostlyBlocked ? 'graphs/free' : 'graphs/block', { jobs: JSON.stringify(others), state: row.state })
  }
  for (const name of [queue.name, ...standing.queues]) markGraphs(context, name)
  statements.run('graphs/link_list', { links: links.inside, first, open: openOf(job.onDead) })
  if (links.outside.length > 0) statements.run('graphs/link', { links: standing.links(first) })
  if (count > blocked) queue.pushed(row.state, count - blocked, row.due_at - row.now)
  if (blocked > 0) queue.pushed('blocked', blocked)
  if (isMostlyBlocked) queues.lineUp(queue.name)
  return true
}

function pushOne(context: StoreContext, job: NewJob, call: Call): PushOutcome {
  const { statements, queues } = context
  const { id, key, data } = job
  const queue = queues.findOrCreate(job.queue)
  if (isMore(queue, job) || hasParents(job)) return pushMore(context, queue, job, call)
  if (queue.room > 0) {
    const row = columnsOf(context, job)
    if (statements.run('push/insert', { ...row, id, key, encoding: data.encoding, data: data.body }) === 1) {
      queue.pushed(row.state, 1, row.due_at - row.now)
      come(context, queue, id)
      return { status: 'pushed', id }
    }
  }
  // A repeated push must not be refused for want of room: its job is in already.
  return existing(context, job, key) ?? { status: 'full', id }
}

function existing({ statements }: StoreContext, { id, queue }: NewJob, key: string | null): PushOutcome | undefined {
  const row = statements.get('push/existing', { id, queue, key })
  return row && { status: 'existing', id: text(row.id) }
}

/** A job with parents, or whose key may be remembered, replace another one, or make it follow. */
function pushMore(context: StoreContext, queue: Queue, job: NewJob, call: Call): PushOutcome {
  const { statements } = context
  const { id, key, data, once } = job
  const hasMore = isMore(queue, job)
  const found = existing(context, job, hasMore ? null : key)
  if (found !== undefined) return waits(job) && found.id !== id ? { ...found, status: 'held' } : found
  const met = hasMore ? meet(context, job, (met, runAt) => updateOne(context, { id: met, data, runAt })) : undefined
  if (met !== undefined && met !== 'follows') return met
  if (queue.room <= 0) return { status: 'full', id }
  const follows = met === 'follows'
  const standing = hasParents(job) ? standingOf(context, job, call) : undefined
  if (typeof standing === 'string') return { status: 'orphan', id, parent: standing }
  if (once?.unique !== undefined || follows) mark(context, queue)
  const row = columnsOf(context, job, { follows, isBlocked: standing?.isBlocked })
  takeKey(context, queue, follows ? null : key)
  const columns = onceColumns(once?.unique, follows ? dueOf(job, row.now, row.now) : null)
  statements.run('once/insert', { ...row, ...columns, id, key, encoding: data.encoding, data: data.body })
  queue.pushed(row.state, 1, row.due_at - row.now)
  come(context, queue, id)
  if (standing !== undefined) link(context, queue, standing, call.endings)
  return { status: 'pushed', id }
}

type Columns = ReturnType<typeof columnsOf>

function columnsOf(
  { statements, queues, now }: StoreContext,
  pushed: NewJob,
  { follows = false, isBlocked = false }: { follows?: boolean; isBlocked?: boolean | undefined } = {},
) {
  const { queue, priority, group, ...job } = pushed
  const { settings } = queues.findOrCreate(queue)
  const due = dueOf(pushed, now, now)
  const state: 'blocked' | 'waiting' | 'scheduled' = isBlocked
    ? 'blocked'
    : due <= now && !follows
      ? 'waiting'
      : 'scheduled'
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
export const pushWithin = (context: StoreContext, pushed: PackedPush): PushOutcome[] | null =>
  undoing(
    context,
    () => push(context, pushed),
    () => false,
  ).output

/** What is done is undone if it fails, or by what it gives. */
function undoing<T>({ statements, queues }: StoreContext, work: () => T, isUndone: (output: T) => boolean) {
  queues.write()
  statements.run('savepoint/begin')
  const undo = (): void => {
    queues.forget()
    statements.run('savepoint/undo')
    statements.run('savepoint/end')
  }
  try {
    const output = work()
    if (isUndone(output)) {
      undo()
      return { output, isUndone: true }
    }
    queues.write()
    statements.run('savepoint/end')
    return { output, isUndone: false }
  } catch (error) {
    try {
      undo()
    } catch {
      // Some errors make SQLite roll back everything, savepoints too; the first error is the one to tell.
    }
    throw error
  }
}
