/** What time alone brings about, and what people bring back. */
import type { FinalState, Swept } from '../../store.ts'
import type { Engine } from './engine.ts'
import type { Account } from './ledger.ts'
import { stateFrom } from './records.ts'
import { integer, integerOrNull, type Row, text } from './values.ts'

const MINUTES_KEPT = 60
const oldestKept = (now: number): number => Math.floor(now / 60_000) - MINUTES_KEPT + 1

/** Per queue, which kinds have something to do. Only reads: most sweeps find nothing and must not take the write lock. */
interface Due {
  queue: string
  promote: boolean
  lost: boolean
  expire: { state: FinalState; until: number }[]
}

function dueOf(row: Row, now: number): Due {
  const past = (column: string, keep = 0): boolean => {
    const time = integerOrNull(row[column])
    return time !== null && time + keep <= now
  }
  const keepDone = integer(row.keep_done)
  const keepDead = integer(row.keep_dead)
  const expire: Due['expire'] = []
  if (past('done_at', keepDone)) expire.push({ state: 'done', until: now - keepDone })
  if (past('dead_at', keepDead)) expire.push({ state: 'dead', until: now - keepDead })
  if (past('cancelled_at', keepDead)) expire.push({ state: 'cancelled', until: now - keepDead })
  return { queue: text(row.name), promote: past('due_at'), lost: past('lease_until'), expire }
}

const hasDue = ({ promote, lost, expire }: Due): boolean => promote || lost || expire.length > 0

const idleOf = (queues: readonly Row[]): string[] => queues.flatMap((row) => (row.idle === 1 ? [text(row.name)] : []))

function hasOldMinutes({ statements }: Engine, now: number): boolean {
  const oldest = integerOrNull(statements.get('sweep/oldest_minute').get()?.minute ?? null)
  return oldest !== null && oldest < oldestKept(now)
}

/** The answer of a sweep that finds nothing to do; null: there is something. */
export function idleSweep(engine: Engine, now: number): Swept | null {
  const queues = engine.statements.get('sweep/look').all()
  if (queues.some((row) => hasDue(dueOf(row, now))) || hasOldMinutes(engine, now)) return null
  if (engine.idle.found(idleOf(queues), now).length > 0) return null
  return { lost: [], promoted: 0, expired: 0, more: false, nextDue: nextDue(queues, now), queues: queues.length }
}

export function sweep(engine: Engine, limit: number, now: number): Swept {
  const { statements, ledger } = engine
  const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0 }
  const queues = statements.get('sweep/look').all()
  for (const row of queues) {
    const due = dueOf(row, now)
    if (!hasDue(due)) continue
    const account = ledger.open(due.queue)
    if (due.promote) {
      const promoted = statements.get('sweep/promote').run({ queue: due.queue, now, limit: limit - swept.promoted })
      account.move('scheduled', 'waiting', promoted)
      swept.promoted += promoted
    }
    if (due.lost) takeBack(engine, account, limit, now, swept)
    for (const { state, until } of due.expire) {
      const expired = statements
        .get('sweep/expire')
        .run({ queue: due.queue, state, until, limit: limit - swept.expired })
      account.move(state, null, expired)
      swept.expired += expired
    }
  }
  removeQueues(engine, engine.idle.found(idleOf(queues), now))
  if (hasOldMinutes(engine, now)) statements.get('sweep/forget_minutes').run({ minute: oldestKept(now) })
  swept.more = swept.promoted >= limit || swept.lost.length >= limit || swept.expired >= limit
  const left = statements.get('sweep/look').all()
  swept.nextDue = nextDue(left, now)
  swept.queues = left.length
  return swept
}

function removeQueues(engine: Engine, names: readonly string[]): void {
  if (names.length === 0) return
  // What this transaction has pushed before is in the sums only until now.
  engine.settle()
  for (const queue of names) {
    if (engine.statements.get('sweep/remove_queue').run({ queue }) === 0) continue
    engine.statements.get('sweep/forget_queue').run({ queue })
    engine.statements.get('sweep/forget_counts').run({ queue })
  }
}

function takeBack(engine: Engine, account: Account, limit: number, now: number, swept: Swept): void {
  const { statements } = engine
  const { name: queue } = account
  for (const row of statements.get('sweep/lost').all({ queue, now, limit: limit - swept.lost.length })) {
    const id = text(row.id)
    const state = row.state === 'dead' ? 'dead' : 'waiting'
    swept.lost.push({ id, queue, attempt: integer(row.attempt), state })
    if (state === 'waiting') {
      account.move('running', 'waiting')
      continue
    }
    account.finish(id, 'running', 'dead')
    if (!account.keeps('dead')) statements.get('sweep/remove').run({ id })
  }
}

function nextDue(queues: readonly Row[], now: number): number | null {
  let next: number | null = null
  for (const row of queues) {
    const due = integerOrNull(row.due_at)
    if (due !== null) next = Math.min(next ?? due, due)
  }
  return next === null ? null : Math.max(0, next - now)
}

export function requeue(
  engine: Engine,
  request: { ids: readonly string[] } | { queue: string; limit: number },
  now: number,
): number {
  const { statements, ledger } = engine
  const rows =
    'ids' in request
      ? request.ids.map((id) => ({ id, ...statements.get('requeue/look').get({ id }) }))
      : statements.get('requeue/dead').all(request)
  let count = 0
  for (const row of rows) {
    if (!('state' in row)) continue
    const id = text(row.id)
    // None: a live job has its key, perhaps one brought back just before.
    if (statements.get('requeue/requeue').run({ id, now }) === 0) continue
    ledger.open(text(row.queue)).move(stateFrom(row.state), 'waiting')
    count++
  }
  return count
}
