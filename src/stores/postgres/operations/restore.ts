import type { Input } from '../../../store.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { taggedFrom } from '../wire.ts'

export async function restore(
  { calls, notifier }: StoreContext,
  { records }: Input<'restore'>,
): Promise<RestoreOutcome[]> {
  const values = [JSON.stringify(records.map(taggedFrom)), calls.now()]
  const outcomes = await calls.answer<RestoreOutcome[]>('restore($1, $2)', values)
  for (const name of new Set(records.map(({ queue }) => queue))) notifier.bells.ring('work', name)
  return outcomes
}
