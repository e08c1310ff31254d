import type { Requeued, RequeueRequest } from '../../../store.ts'
import type { Context } from '../notifier.ts'
import { plainArray } from '../wire.ts'

export async function requeue({ calls, notifier }: Context, request: RequeueRequest): Promise<Requeued> {
  const [ids, queue, limit, until] =
    'ids' in request
      ? [plainArray(request.ids), null, null, null]
      : [null, request.queue, request.limit, request.until ?? null]
  const values = [ids, queue, limit, calls.now(), until]
  const [answer] = await calls.rows<[{ at: string; queues: string[] }]>('requeue($1, $2, $3, $4, $5)', values)
  for (const name of answer.queues) notifier.bells.ring('work', name)
  return { requeued: answer.queues.length, now: Number(answer.at) }
}
