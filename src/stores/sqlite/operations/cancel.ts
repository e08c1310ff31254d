import type { Input } from '../../../store.ts'
import type { FinalState } from '../../../values/jobs/records.ts'
import { stateFrom, text } from '../connection/values.ts'
import { keysOf } from '../once.ts'
import { isLive, type StoreContext } from '../queues.ts'
import { Endings } from '../settle.ts'

export function cancel(context: StoreContext, { ids }: Input<'cancel'>): (FinalState | null)[] {
  const { statements, queues, now } = context
  const endings = new Endings(context)
  const outcomes = ids.map((id): FinalState | null => {
    const row = statements.get('cancel/look', { id })
    if (row === undefined) return null
    const state = stateFrom(row.state)
    if (!isLive(state)) return state
    const queue = queues.findOrCreate(text(row.queue))
    const leaveKey = keysOf(context, queue, [id])
    const isKept = queue.keeps('cancelled')
    endings.look(queue, [id])
    statements.run(isKept ? 'cancel/cancel' : 'cancel/remove', { id, now })
    queue.finish(state, 'cancelled', id)
    leaveKey(id, false)
    endings.ended(id, 'cancelled', isKept)
    return 'cancelled'
  })
  endings.settle()
  return outcomes
}
