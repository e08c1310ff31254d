import type { Input } from '../../../store.ts'
import type { UpdateOutcome } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { orNull, tagged } from '../wire.ts'

export async function update({ calls, notifier }: StoreContext, { items }: Input<'update'>): Promise<UpdateOutcome[]> {
  notifier.stir()
  const sent = items.map((item) => ({ ...item, data: orNull(item.data, tagged) }))
  return calls.answer('update($1, $2)', [JSON.stringify(sent), calls.now()])
}
