import type { Input, PushOutcome } from '../../../store.ts'
import { copyEncoded } from '../../jobs.ts'
import type { StoreContext } from '../context.ts'

export async function push({ notifier, pushes }: StoreContext, { jobs }: Input<'push'>): Promise<PushOutcome[]> {
  if (jobs.length === 0) return []
  notifier.stir()
  return pushes.add(
    jobs.map((job) => ({ ...job, data: copyEncoded(job.data) })),
    0,
  )
}
