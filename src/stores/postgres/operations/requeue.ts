import type { Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import type { Notifier } from '../notifier.ts'
import { plainArray } from '../wire.ts'

export async function requeue(context: StoreContext, request: RequeueRequest): Promise<Requeued> {
  if ('ids' in request && request.forget !== undefined) return requeueFrom(context, request.ids, request.forget)
  const { calls, notifier } = context
  const [ids, queue, limit, until] =
    'ids' in request
      ? [plainArray(request.ids), null, null, null]
      : [null, request.queue, request.limit, request.until ?? null]
  const values = [ids, queue, limit, calls.now(), until]
  return requeued(notifier, await calls.answer<Answer>('requeue($1, $2, $3, $4, $5)', values))
}

async function requeueFrom(
  { calls, notifier }: StoreContext,
  ids: readonly string[],
  forget: number,
): Promise<Requeued> {
  const values = [plainArray(ids), forget, calls.now()]
  return requeued(notifier, await calls.answer<Answer>('requeue_from($1, $2, $3)', values))
}

interface Answer {
  at: number
  queues: string[]
}

function requeued({ bells }: Notifier, { at, queues }: Answer): Requeued {
  for (const name of queues) bells.ring('work', name)
  return { requeued: queues.length, now: at }
}
