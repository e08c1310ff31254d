import type { Input } from '../../../store.ts'
import type { Relatives } from '../../../values/operations/requests.ts'
import type { StoreContext } from '../context.ts'
import { plainArray } from '../wire.ts'

export async function relatives({ calls }: StoreContext, request: Input<'relatives'>): Promise<(Relatives | null)[]> {
  const { ids, limit } = request
  if (ids.length === 0) return []
  return calls.answer('relatives($1, $2)', [plainArray(ids), limit])
}
