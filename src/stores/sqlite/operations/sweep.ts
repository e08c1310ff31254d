import type { Swept } from '../../../store.ts'
import { integer, integerOrNull, type Row, text } from '../connection/values.ts'
import type { Context, QueueChanges } from '../queues.ts'

const MINUTES_KEPT = 60
const oldestKept = (now: number): number => Math.floor(now / 60_000) - MINUTES_KEPT + 1

const FINAL_STATES = ['done', 'dead', 'cancelled'] as const

/** Columns of `look` that tell what there is to do. */
const KINDS = ['line_up', 'forget', 'promote', 'lost', ...FINAL_STATES]
const hasWork = (row: Row): boolean => KINDS.some((kind) => row[kind] === 1)

const idleIn = (rows: readonly Row[]): string[] => rows.flatMap((row) => (row.idle === 1 ? [text(row.name)] : []))

function hasOldMinutes({ statements, now }: Context): boolean {
  const oldest = integerOrNull(statements.get('sweep/oldest_minute').get()?.minute)
  return oldest !== null && oldest < oldestKept(now)
}

function sweptNothing(rows: readonly Row[], now: number): Swept {
  const due = rows.flatMap((row) => integerOrNull(row.due_at) ?? [])
  const next = due.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY)
  const nextDue = due.length === 0 ? null : Math.max(0, next - now)
  return { lost: [], promoted: 0, expired: 0, more: false, nextDue, queues: rows.length }
}

/** The answer of a sweep that finds nothing to do; undefined: there is something. Only reads. */
export function sweepNothing(context: Context, _limit: number): Swept | undefined {
  const { statements, idle, now } = context
  const rows = statements.get('sweep/look').all({ now })
  if (rows.some(hasWork)) return undefined
  if (hasOldMinutes(context) || idle.found(idleIn(rows), now).length > 0) return undefined
  return sweptNothing(rows, now)
}

export function sweep(context: Context, limit: number): Swept {
  const { statements, queues, idle, now } = context
  const rows = statements.get('sweep/look').all({ now })
  let promoted = 0
  let expired = 0
  let forgotten = 0
  const lost: Swept['lost'] = []
  for (const row of rows) {
    if (!hasWork(row)) continue
    const queue = text(row.name)
    const changes = queues.findOrCreate(queue)
    if (row.forget === 1) forgotten += statements.get('limits/forget').run({ queue, now, limit: limit - forgotten })
    if (row.promote === 1) {
      const count = statements.get('sweep/promote').run({ queue, now, limit: limit - promoted })
      changes.move('scheduled', 'waiting', count)
      promoted += count
    }
    if (row.line_up === 1 || row.promote === 1) queues.lineUp(queue)
    if (row.lost === 1) lost.push(...takeBack(context, changes, limit - lost.length))
    for (const state of FINAL_STATES.filter((one) => row[one] === 1)) {
      const until = now - integer(state === 'done' ? row.keep_done : row.keep_dead)
      const count = statements.get('sweep/expire').run({ queue, state, until, limit: limit - expired })
      changes.move(state, null, count)
      expired += count
    }
  }
  removeQueues(context, idle.found(idleIn(rows), now))
  if (hasOldMinutes(context)) statements.get('sweep/forget_minutes').run({ minute: oldestKept(now) })
  const more = Math.max(promoted, lost.length, expired, forgotten) >= limit
  return { ...sweptNothing(statements.get('sweep/look').all({ now }), now), lost, promoted, expired, more }
}

function takeBack({ statements, now }: Context, queue: QueueChanges, limit: number): Swept['lost'] {
  return statements
    .get('sweep/lost')
    .all({ queue: queue.name, now, limit })
    .map((row) => {
      const id = text(row.id)
      const state = row.state === 'dead' ? 'dead' : 'waiting'
      if (state === 'waiting') queue.move('running', 'waiting')
      else {
        queue.finish('running', 'dead', [id])
        if (!queue.keeps('dead')) statements.get('sweep/remove').run({ id })
      }
      return { id, queue: queue.name, attempt: integer(row.attempt), state }
    })
}

function removeQueues({ statements, queues }: Context, names: readonly string[]): void {
  // What this transaction has pushed before is known to the statement only then.
  if (names.length > 0) queues.write()
  for (const queue of names) {
    if (statements.get('sweep/remove_queue').run({ queue }) === 0) continue
    statements.get('sweep/forget_queue').run({ queue })
  }
}
