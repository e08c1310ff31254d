import type { Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { plainArray } from '../wire.ts'

export async function requeue({ calls, notifier }: StoreContext, request: RequeueRequest): Promise<Requeued> {
  const [ids, queue, limit, until] =
    'ids' in request
      ? [plainArray(request.ids), null, null, null]
      : [null, request.queue, request.limit, request.until ?? null]
  const values = [ids, queue, limit, calls.now(), until]
  const { at, queues } = await calls.answer<{ at: number; queues: string[] }>('requeue($1, $2, $3, $4, $5)', values)
  for (const name of queues) notifier.bells.ring('work', name)
  return { requeued: queues.length, now: at }
}
