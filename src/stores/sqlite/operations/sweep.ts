import type { Swept } from '../../../store.ts'
import { flag, integer, integerOrNull, text } from '../connection/values.ts'
import type { Context, Queue } from '../queues.ts'

const FINAL_STATES = ['done', 'dead', 'cancelled'] as const

export function sweep(context: Context, limit: number): Swept {
  const { statements, queues, idle, now } = context
  const swept: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0 }
  let forgotten = 0
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
    if (flag(row.lost)) swept.lost.push(...takeBack(context, queue, limit - swept.lost.length))
    for (const state of FINAL_STATES.filter((one) => flag(row[one]))) {
      const count = statements.run('sweep/expire', { queue: name, state, now, limit: limit - swept.expired })
      queue.move(state, null, count)
      swept.expired += count
    }
  }
  const unused = idle.found(
    rows.filter((row) => flag(row.idle)).map(({ name }) => text(name)),
    now,
  )
  removeQueues(context, unused)
  if (statements.get('sweep/old_minutes', { now }) !== undefined) statements.run('sweep/forget_minutes', { now })
  if (busy.length + unused.length > 0) rows = statements.all('sweep/look', { now })
  const due = rows.flatMap(({ due_at }) => integerOrNull(due_at) ?? [])
  if (due.length > 0) swept.nextDue = Math.max(0, due.reduce((one, other) => Math.min(one, other)) - now)
  swept.queues = rows.length
  swept.more = Math.max(swept.promoted, swept.lost.length, swept.expired, forgotten) >= limit
  return swept
}

/** What this transaction has counted so far is in the jobs already. */
function recount({ statements, queues }: Context, queue: string): void {
  queues.write()
  statements.run('sweep/recount', { queue })
}

function takeBack({ statements, now }: Context, queue: Queue, limit: number): Swept['lost'] {
  return statements.all('sweep/lost', { queue: queue.name, now, limit }).map((row) => {
    const id = text(row.id)
    const state = row.state === 'dead' ? 'dead' : 'waiting'
    if (state === 'waiting') queue.move('running', 'waiting')
    else {
      queue.finish('running', 'dead', id)
      if (!queue.keeps('dead')) statements.run('sweep/remove', { id })
    }
    return { id, queue: queue.name, attempt: integer(row.attempt), state }
  })
}

function removeQueues({ statements, queues }: Context, names: readonly string[]): void {
  // What this transaction has pushed before is known to the statement only then.
  if (names.length > 0) queues.write()
  for (const queue of names) {
    if (statements.run('sweep/remove_queue', { queue }) === 1) statements.run('sweep/forget_queue', { queue })
  }
}
