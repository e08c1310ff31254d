import type { Input } from '../../../store.ts'
import type { JobUpdate, UpdateOutcome } from '../../../values/operations/requests.ts'
import { stateFrom, text } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'

export function update(context: StoreContext, { items }: Input<'update'>): UpdateOutcome[] {
  return items.map((item) => updateOne(context, item))
}

export function updateOne(
  { statements, queues, now }: StoreContext,
  { id, data, priority, delay, runAt }: JobUpdate,
): UpdateOutcome {
  const row = statements.get('update/look', { id })
  if (row === undefined) return null
  const state = stateFrom(row.state)
  if (state !== 'blocked' && state !== 'scheduled' && state !== 'waiting') return state
  const isDue = runAt !== undefined || delay !== undefined
  let due_at = isDue ? Math.max(now, runAt ?? now + (delay ?? 0)) : null
  const queue = queues.findOrCreate(text(row.queue))
  if (due_at !== null && row.follow_due !== null) {
    statements.run('once/postpone', { id, due_at })
    due_at = null
  }
  if (row.line !== null && (isDue || priority !== undefined)) statements.run('update/leave', { id })
  const change = { id, now, state, due_at, priority: priority ?? null }
  const changed = statements.get('update/change', {
    ...change,
    encoding: data?.encoding ?? null,
    data: data?.body ?? null,
  })
  const after = stateFrom(changed?.state)
  queue.move(state, after, 1, due_at === null ? undefined : due_at - now)
  if (after === 'waiting') queues.lineUp(queue.name)
  return 'updated'
}
