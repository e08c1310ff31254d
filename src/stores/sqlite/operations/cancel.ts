import type { FinalState } from '../../../store.ts'
import { stateFrom, text } from '../connection/values.ts'
import type { Context } from '../queues.ts'

export function cancel({ statements, queues, now }: Context, ids: readonly string[]): (FinalState | null)[] {
  return ids.map((id) => {
    const row = statements.get('cancel/look').get({ id })
    if (row === undefined) return null
    const state = stateFrom(row.state)
    if (state === 'done' || state === 'dead' || state === 'cancelled') return state
    const queue = queues.findOrCreate(text(row.queue))
    if (queue.keeps('cancelled')) statements.get('cancel/cancel').run({ id, now })
    else statements.get('cancel/remove').run({ id })
    queue.finish(state, 'cancelled', [id])
    return 'cancelled'
  })
}
