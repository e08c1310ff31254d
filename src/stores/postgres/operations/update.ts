import type { Input } from '../../../store.ts'
import type { UpdateOutcome } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { orNull, tagged } from '../wire.ts'

export async function update(context: StoreContext, { items }: Input<'update'>): Promise<UpdateOutcome[]> {
  const { calls, notifier } = context
  notifier.stir()
  const sent = items.map((item) => ({ ...item, data: orNull(item.data, tagged) }))
  return context.apart(sent, {
    sent: (some) => ['update($1, $2)', [JSON.stringify(some), calls.now()]],
    read: (answer: UpdateOutcome[]) => answer,
  })
}
