import type { Input } from '../../../store.ts'
import type { RestoreOutcome } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { taggedFrom } from '../wire.ts'

export async function restore(context: StoreContext, { records }: Input<'restore'>): Promise<RestoreOutcome[]> {
  const { calls, notifier } = context
  const outcomes = await context.apart(records, {
    sent: (some) => ['restore($1, $2)', [JSON.stringify(some.map(taggedFrom)), calls.now()]],
    read: (answer: RestoreOutcome[]) => answer,
  })
  for (const name of new Set(records.map(({ queue }) => queue))) notifier.bells.ring('work', name)
  return outcomes
}
