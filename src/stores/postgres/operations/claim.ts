import type { Claimed, ClaimRequest } from '../../../values/jobs/records.ts'
import type { StoreContext } from '../context.ts'
import { type ClaimedList, claimedFrom } from '../wire.ts'

/** `jobs` by itself: inside JSON all that producers stored would be quoted once more. */
const COLUMNS = 'jobs, pg_catalog.json_build_array(at, holds, retry_after, asleep, bounded, limited, slots)'

type Answer = [
  at: number,
  holds: number,
  retryAfter: number | null,
  asleep: boolean,
  bounded: boolean | null,
  limited: boolean,
  slots: boolean,
]

export async function claim({ calls, notifier }: StoreContext, request: ClaimRequest): Promise<Claimed> {
  const { queue, worker, limit, lease, minPriority = 0, perGroup = 1 } = request
  notifier.bells.concern(queue)
  const values = [queue, worker, limit, lease, notifier.listener, calls.now(), minPriority, perGroup]
  const [[jobs = null, answer] = []] = await calls.rows(COLUMNS, 'claim($1, $2, $3, $4, $5, $6, $7, $8)', values)
  const list: ClaimedList[] = jobs === null ? [] : JSON.parse(jobs)
  const [now, holds, retryAfter, asleep, bounded, limited, slots]: Answer = JSON.parse(answer ?? '[]')
  if (list.length > 0 && bounded) notifier.bells.ring('room', queue)
  notifier.claimed(request, list.length, { asleep, slots })
  return { now, lease: holds, jobs: list.map(claimedFrom), retryAfter, limited }
}
