import type { Input } from '../../../store.ts'
import type { JobRecord } from '../../../values/jobs/records.ts'
import type { StoreContext } from '../context.ts'

export async function find({ notifier, lookUps }: StoreContext, { ids }: Input<'find'>): Promise<(JobRecord | null)[]> {
  notifier.stir()
  return lookUps.add([...ids], ids.length)
}

export async function ahead({ calls }: StoreContext, { id }: Input<'ahead'>): Promise<number | null> {
  return calls.answer('ahead($1)', [id])
}
