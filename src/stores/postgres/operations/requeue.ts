import type { StoreAdmin } from '../../../store.ts'
import type { Context } from '../notifier.ts'
import { plainArray } from '../wire.ts'

type Request = Parameters<StoreAdmin['requeue']>[0]

export async function requeue({ calls, notifier }: Context, request: Request): Promise<number> {
  const given = 'ids' in request ? [plainArray(request.ids), null, null] : [null, request.queue, request.limit]
  const queues = await calls.answer<string[]>('requeue($1, $2, $3, $4)', [...given, calls.now()])
  for (const queue of queues) notifier.bells.ring('work', queue)
  return queues.length
}
