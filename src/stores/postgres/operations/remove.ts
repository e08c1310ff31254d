import type { Removed, RemoveRequest } from '../../../values/operations/requests.ts'
import { KINDS } from '../../bells.ts'
import type { StoreContext } from '../context.ts'
import { plainArray } from '../wire.ts'

interface Answer extends Removed {
  /** The queue of each removed job. */
  queues: string[]
}

const REMOVE = 'remove($1, $2, $3, $4, $5)'

export async function remove(context: StoreContext, request: RemoveRequest): Promise<Removed> {
  const { calls, notifier } = context
  notifier.stir()
  const answers =
    'ids' in request
      ? await context.apart(request.ids, {
          sent: (some) => [REMOVE, [plainArray(some), null, null, null, calls.now()]],
          read: (answer: Answer) => [answer],
        })
      : [await calls.answer<Answer>(REMOVE, removeAll(request, calls.now()))]
  for (const name of new Set(answers.flatMap(({ queues }) => queues)))
    for (const kind of KINDS) notifier.bells.ring(kind, name)
  return {
    removed: answers.reduce((sum, { removed }) => sum + removed, 0),
    more: answers.some(({ more }) => more),
  }
}

function removeAll({ queue, state, limit }: Exclude<RemoveRequest, { ids: unknown }>, now: number | null): unknown[] {
  return [null, queue, state ?? null, limit, now]
}
