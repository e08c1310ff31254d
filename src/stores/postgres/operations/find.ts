import type { Input, JobRecord } from '../../../store.ts'
import type { Context } from '../context.ts'

export async function find({ notifier, lookUps }: Context, { ids }: Input<'find'>): Promise<(JobRecord | null)[]> {
  notifier.stir()
  return lookUps.add([...ids], ids.length)
}

export async function ahead({ calls }: Context, { id }: Input<'ahead'>): Promise<number | null> {
  return calls.answer('ahead($1)', [id])
}
