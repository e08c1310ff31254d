import type { Removed, RemoveRequest } from '../../../values/operations/requests.ts'
import { KINDS } from '../../bells.ts'
import type { StoreContext } from '../context.ts'
import { plainArray } from '../wire.ts'

interface Answer extends Removed {
  /** The queue of each removed job. */
  queues: string[]
}

export async function remove({ calls, notifier }: StoreContext, request: RemoveRequest): Promise<Removed> {
  notifier.stir()
  const [ids, queue, state, limit] =
    'ids' in request
      ? [plainArray(request.ids), null, null, null]
      : [null, request.queue, request.state ?? null, request.limit]
  const { removed, more, queues } = await calls.answer<Answer>('remove($1, $2, $3, $4, $5)', [
    ...[ids, queue, state, limit],
    calls.now(),
  ])
  for (const name of new Set(queues)) for (const kind of KINDS) notifier.bells.ring(kind, name)
  return { removed, more }
}
