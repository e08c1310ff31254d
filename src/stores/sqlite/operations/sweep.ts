import type { Input } from '../../../store.ts'
import type { Swept } from '../../../values/operations/swept.ts'
import { flag, integer, text } from '../connection/values.ts'
import { keysOf, timeOrNull } from '../once.ts'
import type { Queue, StoreContext } from '../queues.ts'
import { Endings, expiring, lookAtHeld, settleRest, shrink } from '../settle.ts'
import { dueSchedules } from './schedules.ts'

const FINAL_STATES = ['done', 'dead', 'cancelled'] as const

export function sweep(context: StoreContext, { limit }: Input<'sweep'>): Swept {
  const { statements, queues, now } = context
  const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0, schedules: null }
  let forgotten = 0
  const hasMoreLinks = settleRest(context)
  const endings = new Endings(context)
  let rows = statements.all('sweep/look', { now })
  const busy = rows.filter((row) => flag(row.busy))
  for (const row of busy) {
    const name = text(row.name)
    if (flag(row.emptied)) recount(context, name)
    const queue = queues.findOrCreate(name)
    if (flag(row.forget)) forgotten += statements.run('limits/forget', { queue: name, now, limit: limit - forgotten })
    if (flag(row.promote)) {
      const count = statements.run('sweep/promote', { queue: name, now, limit: limit - swept.promoted })
      queue.move('scheduled', 'waiting', count)
      swept.promoted += count
    }
    if (flag(row.line_up) || flag(row.promote)) queues.lineUp(name)
    if (flag(row.ahead)) statements.run('sweep/set_back', { queue: name, now, limit })
    if (flag(row.lost)) swept.lost.push(...takeBack(context, queue, limit - swept.lost.length, endings))
    for (const state of FINAL_STATES.filter((one) => flag(row[one]))) {
      const of = { state, limit: limit - swept.expired }
      const held = expiring(context, queue, of, endings)
      const removed = statements.run('sweep/expire', { queue: name, now, state, limit: of.limit - held })
      queue.move(state, null, held + removed)
      swept.expired += held + removed
    }
  }
  lookAtHeld(context, endings)
  endings.settle()
  if (statements.get('sweep/old_minutes', { now }) !== undefined) {
    statements.run('sweep/add_up_minutes', { now })
    statements.run('sweep/forget_minutes', { now })
  }
  if (statements.get('once/over', { now }) !== undefined) {
    forgotten += statements.run('once/expire', { now, limit: limit - forgotten })
  }
  if (statements.get('workers/silent', { now }) !== undefined) statements.run('workers/forget', { now })
  if (busy.length > 0) rows = statements.all('sweep/look', { now })
  const due = rows.flatMap(({ due_at }) => timeOrNull(due_at) ?? [])
  if (due.length > 0) swept.nextDue = Math.max(0, due.reduce((one, other) => Math.min(one, other)) - now)
  const { due: schedules, nextAt } = dueSchedules(context)
  if (nextAt !== null) swept.nextDue = Math.min(swept.nextDue ?? Number.POSITIVE_INFINITY, nextAt - now)
  if (schedules.length > 0) swept.schedules = { now, due: schedules }
  swept.queues = rows.length
  swept.more = hasMoreLinks || Math.max(swept.promoted, swept.lost.length, swept.expired, forgotten) >= limit
  return swept
}

/** What this transaction has counted so far is in the jobs already. */
function recount({ statements, queues }: StoreContext, queue: string): void {
  queues.write()
  statements.run('sweep/recount', { queue })
  statements.run('graphs/unfounded')
  statements.run('graphs/unfounded_gone')
  shrink(statements)
}

function takeBack(context: StoreContext, queue: Queue, limit: number, endings: Endings): Swept['lost'] {
  const { statements, now } = context
  return statements.all('sweep/lost', { queue: queue.name, now, limit }).map((row) => {
    const id = text(row.id)
    const state = row.state === 'dead' ? 'dead' : 'waiting'
    queue.count('total', 'lost', 1)
    if (state === 'waiting') queue.move('running', 'waiting')
    else {
      queue.finish('running', 'dead', id)
      keysOf(context, queue, [id])(id, true)
      endings.look(queue, [id])
      endings.ended(id, 'dead', queue.keeps('dead'))
      if (!queue.keeps('dead')) statements.run('sweep/remove', { id })
    }
    return { id, queue: queue.name, attempt: integer(row.attempt), state }
  })
}
