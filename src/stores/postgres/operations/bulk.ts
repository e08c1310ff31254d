/** One change to all jobs of a state that pass a filter, a step at a time. */
import type { BulkRequest, BulkStep } from '../../../values/operations/requests.ts'
import { KINDS } from '../../bells.ts'
import type { StoreContext } from '../context.ts'

interface Answer extends Omit<BulkStep, 'now'> {
  at: number
}

export async function bulk({ calls, notifier }: StoreContext, request: BulkRequest): Promise<BulkStep> {
  const { queue, state, change, limit, after, filter, until } = request
  if (limit > 0) notifier.stir()
  const { priority, runAt } = change.kind === 'update' ? change : {}
  const values = [
    ...[queue, state, change.kind, limit, after ?? null, filter === undefined ? null : JSON.stringify(filter)],
    ...[until ?? null, priority ?? null, runAt ?? null, calls.now()],
  ]
  const call = 'bulk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)'
  const { at, ...step } = await calls.answer<Answer>(call, values)
  if (step.changed > 0) for (const kind of KINDS) notifier.bells.ring(kind, queue)
  return { ...step, now: at }
}
