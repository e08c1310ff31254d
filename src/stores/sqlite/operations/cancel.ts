import type { FinalState, Input } from '../../../store.ts'
import { stateFrom, text } from '../connection/values.ts'
import { keysOf } from '../once.ts'
import type { StoreContext } from '../queues.ts'

export function cancel(context: StoreContext, { ids }: Input<'cancel'>): (FinalState | null)[] {
  const { statements, queues, now } = context
  return ids.map((id) => {
    const row = statements.get('cancel/look', { id })
    if (row === undefined) return null
    const state = stateFrom(row.state)
    if (state === 'done' || state === 'dead' || state === 'cancelled') return state
    const queue = queues.findOrCreate(text(row.queue))
    const leaveKey = keysOf(context, queue, [id])
    statements.run(queue.keeps('cancelled') ? 'cancel/cancel' : 'cancel/remove', { id, now })
    queue.finish(state, 'cancelled', id)
    leaveKey(id, false)
    return 'cancelled'
  })
}
