import type { Requeued, RequeueRequest } from '../../../store.ts'
import { stateFrom, text } from '../connection/values.ts'
import type { StoreContext } from '../queues.ts'

export function requeue({ statements, queues, now }: StoreContext, request: RequeueRequest): Requeued {
  const rows =
    'ids' in request
      ? request.ids.flatMap((id) => statements.all('requeue/look', { id }))
      : statements.all('requeue/dead', { ...request, until: request.until ?? null })
  let requeued = 0
  for (const { id = null, queue, state } of rows) {
    // 0: a live job has its key, perhaps one that was brought back just before.
    if (statements.run('requeue/requeue', { id, now }) === 0) continue
    queues.findOrCreate(text(queue)).move(stateFrom(state), 'waiting')
    queues.lineUp(text(queue))
    requeued++
  }
  return { requeued, now }
}
