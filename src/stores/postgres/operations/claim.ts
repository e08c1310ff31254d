import type { Claimed, ClaimRequest } from '../../../store.ts'
import type { Context } from '../notifier.ts'
import { type ClaimedList, claimedFrom, orNull } from '../wire.ts'

/** Whole numbers of 8 bytes come as text. */
interface Answer {
  at: string
  holds: string
  jobs: string | null
  retry_after: string | null
  asleep: boolean
  bounded: boolean | null
  limited: boolean
  slots: boolean
}

export async function claim({ calls, notifier }: Context, request: ClaimRequest): Promise<Claimed> {
  const { queue, worker, limit, lease, minPriority = 0, perGroup = 1 } = request
  notifier.bells.concern(queue)
  const values = [queue, worker, limit, lease, notifier.listener, calls.now(), minPriority, perGroup]
  const [answer] = await calls.rows<[Answer]>('claim($1, $2, $3, $4, $5, $6, $7, $8)', values)
  const list: ClaimedList[] = answer.jobs === null ? [] : JSON.parse(answer.jobs)
  if (list.length > 0 && answer.bounded) notifier.bells.ring('room', queue)
  notifier.claimed(request, list.length, answer)
  return {
    now: Number(answer.at),
    lease: Number(answer.holds),
    jobs: list.map(claimedFrom),
    retryAfter: orNull(answer.retry_after, Number),
    limited: answer.limited,
  }
}
