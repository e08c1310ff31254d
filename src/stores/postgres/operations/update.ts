import type { Input, UpdateOutcome } from '../../../store.ts'
import type { StoreContext } from '../context.ts'
import { orNull, tagged } from '../wire.ts'

export async function update({ calls, notifier }: StoreContext, { items }: Input<'update'>): Promise<UpdateOutcome[]> {
  notifier.stir()
  const sent = items.map((item) => ({ ...item, data: orNull(item.data, tagged) }))
  return calls.answer('update($1, $2)', [JSON.stringify(sent), calls.now()])
}
