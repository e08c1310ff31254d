import type { Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import { integer, stateFrom, text, textOrNull } from '../connection/values.ts'
import { blockAgain } from '../graphs.ts'
import { forget } from '../journal.ts'
import { takeKey } from '../once.ts'
import type { StoreContext } from '../queues.ts'

export function requeue(context: StoreContext, request: RequeueRequest): Requeued {
  const { statements, queues, now } = context
  const rows =
    'ids' in request
      ? request.ids.flatMap((id) => statements.all('requeue/look', { id }))
      : statements.all('requeue/dead', { ...request, until: request.until ?? null })
  const from = 'ids' in request ? request.forget : undefined
  let requeued = 0
  const linked: number[] = []
  const names = new Set<string>()
  for (const { seq, id = null, queue, state, key } of rows) {
    // 0: a live job has its key, perhaps one that was brought back just before.
    if (statements.run('requeue/requeue', { id, now }) === 0) continue
    if (from !== undefined) forget(statements, text(id), from)
    const own = queues.findOrCreate(text(queue))
    own.move(stateFrom(state), 'waiting')
    takeKey(context, own, textOrNull(key))
    if (own.settings.usesGraphs) linked.push(integer(seq))
    names.add(own.name)
    requeued++
  }
  blockAgain(context, linked)
  for (const name of names) queues.lineUp(name)
  return { requeued, now }
}
