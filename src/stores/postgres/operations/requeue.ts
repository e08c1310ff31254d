import type { Requeued, RequeueRequest } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { plainArray } from '../wire.ts'

interface Answer {
  at: number
  /** The queue of each job. */
  queues: string[]
}

const REQUEUE = 'requeue($1, $2, $3, $4, $5)'

export async function requeue(context: StoreContext, request: RequeueRequest): Promise<Requeued> {
  const { calls, notifier } = context
  const forget = 'ids' in request ? request.forget : undefined
  const answers =
    'ids' in request
      ? await context.apart(request.ids, {
          sent: (some) =>
            forget === undefined
              ? [REQUEUE, [plainArray(some), null, null, calls.now(), null]]
              : ['requeue_from($1, $2, $3)', [plainArray(some), forget, calls.now()]],
          read: (answer: Answer) => [answer],
        })
      : [await calls.answer<Answer>(REQUEUE, requeueAll(request, calls.now()))]
  const queues = answers.flatMap((answer) => answer.queues)
  for (const name of queues) notifier.bells.ring('work', name)
  return { requeued: queues.length, now: answers[0]?.at ?? 0 }
}

function requeueAll({ queue, limit, until }: Exclude<RequeueRequest, { ids: unknown }>, now: number | null): unknown[] {
  return [null, queue, limit, now, until ?? null]
}
