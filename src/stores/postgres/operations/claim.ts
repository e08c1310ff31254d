import type { Claimed, ClaimRequest } from '../../../store.ts'
import type { Context } from '../context.ts'
import { claimedFrom, integer, list, orNull, text } from '../wire.ts'

export async function claim({ calls, notifier }: Context, request: ClaimRequest): Promise<Claimed> {
  const { queue, worker, limit, lease, minPriority } = request
  notifier.concern(queue)
  const values = [queue, worker, limit, lease, notifier.listener, calls.now(), minPriority ?? 0]
  const row = await calls.row('claim($1, $2, $3, $4, $5, $6, $7)', values)
  const jobs = row.jobs === null ? [] : list(JSON.parse(text(row.jobs))).map(claimedFrom)
  if (jobs.length > 0 && row.bounded === true) notifier.bells.ring('room', queue)
  notifier.claimed(request, jobs.length, row.asleep === true)
  const retryAfter = orNull(row.retry_after, integer)
  return { now: integer(row.at), lease: integer(row.holds), jobs, retryAfter, limited: row.limited === true }
}
