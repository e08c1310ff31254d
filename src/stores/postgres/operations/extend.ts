import type { Input } from '../../../store.ts'
import type { ExtendOutcome } from '../../../values/jobs/records.ts'
import type { StoreContext } from '../context.ts'
import { bodiesText, heldValues, logsText } from '../wire.ts'

export async function extend(
  { calls }: StoreContext,
  { queue, lease, items }: Input<'extend'>,
): Promise<ExtendOutcome[]> {
  const reports = bodiesText(items.map(({ progress }) => progress))
  const values = [queue, lease, ...heldValues(items), reports, logsText(items), calls.now()]
  return calls.answer<ExtendOutcome[]>('extend($1, $2, $3, $4, $5, $6, $7)', values)
}
