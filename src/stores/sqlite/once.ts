/** Keys that are remembered, and followers: contract/sqlite/once.sql. A queue that has none runs nothing of this. */

import { latestDue, NEVER, rememberedUntil, storedUnique, uniqueFrom } from '../../values/jobs/once.ts'
import type { FinalState, JobRecord, JobState, NewJob, PushOutcome, Unique } from '../../values/jobs/records.ts'
import { waits } from '../jobs.ts'
import { integer, integerOrNull, type Row, stateFrom, text } from './connection/values.ts'
import type { Queue, StoreContext } from './queues.ts'

/** When a job is due that was first pushed at `pushedAt`. */
export function dueOf({ delay, runAt, once }: NewJob, pushedAt: number, now: number): number {
  const dueAt = runAt ?? now + delay
  return Math.max(now, once === undefined ? dueAt : Math.min(dueAt, latestDue(once, pushedAt)))
}

/** Whether this push needs more than the rule of one live job per key. */
export const isMore = (queue: Queue, { key, once }: NewJob): boolean =>
  key !== null && (once !== undefined || queue.settings.usesOnce)

/**
 * What a push finds under its key. Undefined: nothing; `follows`: a running job, and the push is to follow it.
 * @param replace changes a scheduled or waiting job
 */
export function meet(
  { statements, now }: StoreContext,
  job: NewJob,
  replace: (id: string, dueAt: number) => void,
): PushOutcome | 'follows' | undefined {
  const { queue, key, once } = job
  const met = statements.get('once/met', { queue, key, now })
  if (met === undefined) return undefined
  if (waits(job)) return { status: 'held', id: text(met.id) }
  const existing = { status: 'existing' as const, id: text(met.id) }
  const isLive = met.state !== null
  if (!isLive || !(once?.replace || once?.follow)) return existing
  const follower = statements.get('once/follower', { queue, key })
  const replaced = follower ?? (once.replace && met.state !== 'running' ? met : undefined)
  if (replaced !== undefined) {
    const id = text(replaced.id)
    replace(id, dueOf(job, integer(replaced.pushed_at), now))
    return { status: 'replaced', id }
  }
  return once.follow && met.state === 'running' ? 'follows' : existing
}

/** Before a job with more than a plain key is stored. */
export function mark({ statements }: StoreContext, queue: Queue): void {
  if (queue.settings.usesOnce) return
  statements.run('once/mark', { queue: queue.name })
  queue.settings.usesOnce = true
}

/** A live job is about to have the key. */
export function takeKey({ statements }: StoreContext, queue: Queue, key: string | null): void {
  if (key !== null && queue.settings.usesOnce) statements.run('once/take', { queue: queue.name, key })
}

const isFinal = (state: JobState): state is FinalState => state === 'done' || state === 'dead' || state === 'cancelled'

/** The columns of a job's row. */
export const onceColumns = (unique: Unique | undefined, followDue: number | null) => ({
  remember: storedUnique(unique),
  follow_due: followDue,
})

/** The fields of a record. */
export function onceFrom(row: Row) {
  return {
    ...uniqueFrom(integerOrNull(row.remember)),
    ...(row.follow_due !== null && { dueAt: integer(row.follow_due), follows: true }),
  }
}

/** `due_at` of a job that a time brings about; null: there is none. */
export function timeOrNull(dueAt: unknown): number | null {
  const time = integerOrNull(dueAt as Row[string])
  return time === null || time >= NEVER ? null : time
}

/**
 * To be called before jobs end or are removed, for what their keys become then. Where dead jobs are kept, also after.
 * @returns to be called for each that has ended; `hasAnswer`: it is done or dead
 */
export function keysOf(
  context: StoreContext,
  queue: Queue | undefined,
  ids: readonly string[],
): (id: string, hasAnswer: boolean) => void {
  if (!queue?.settings.usesOnce) return () => {}
  const rows = context.statements.all('once/holders', { ids: JSON.stringify(ids) })
  const holders = new Map(rows.map((row) => [text(row.id), row]))
  return (id, hasAnswer) => {
    const row = holders.get(id)
    if (row === undefined) return
    const { statements } = context
    // One that ends with an answer may have ended before it was read here.
    if (hasAnswer || !isFinal(stateFrom(row.state))) giveUp(context, queue, row, hasAnswer)
    else statements.run('once/forget', { queue: queue.name, key: text(row.key), id })
  }
}

function giveUp(context: StoreContext, queue: Queue, row: Row, hasAnswer: boolean): void {
  const of = { queue: queue.name, key: text(row.key) }
  if (!letFollow(context, queue, of.key) && hasAnswer) remember(context, of, row, context.now)
}

/** The job that has the key has ended: its follower has the key, and is due. @returns whether it had one */
export function letFollow({ statements, now }: StoreContext, queue: Queue, key: string | null): boolean {
  if (key === null || !queue.settings.usesOnce) return false
  const follower = statements.get('once/follower', { queue: queue.name, key })
  if (follower === undefined) return false
  const dueAt = integer(statements.get('once/due', { id: text(follower.id), now })?.due_at)
  queue.move('scheduled', 'scheduled', 1, dueAt - now)
  return true
}

/** A job that ended at `endedAt` has no follower. */
export function remember(
  { statements, now }: Pick<StoreContext, 'statements' | 'now'>,
  of: { queue: string; key: string },
  { id, remember: stored, pushed_at }: Row,
  endedAt: number,
): void {
  const { unique } = uniqueFrom(integerOrNull(stored))
  if (unique === undefined) return
  const until = rememberedUntil(unique, integer(pushed_at), endedAt)
  if (until > now) statements.run('once/remember', { ...of, id: text(id), until })
}

/** Whether a live job has the key of a record. */
export const hasHolder = ({ statements, now }: StoreContext, { queue, key }: JobRecord): boolean =>
  (statements.get('once/met', { queue, key, now })?.state ?? null) !== null

/** A record was restored: its key is taken, or remembered as if it had ended here. */
export function restoreKey(context: StoreContext, queue: Queue, record: JobRecord, isFollower: boolean): void {
  const { id, key, state, unique, pushedAt, finishedAt } = record
  if (key === null || !queue.settings.usesOnce || isFollower) return
  if (finishedAt === null) takeKey(context, queue, key)
  else if (state !== 'cancelled' && !hasHolder(context, record)) {
    remember(
      context,
      { queue: queue.name, key },
      { id, remember: storedUnique(unique), pushed_at: pushedAt },
      finishedAt,
    )
  }
}
