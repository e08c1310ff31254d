import type { Input, PushOutcome } from '../../../store.ts'
import { copyEncoded } from '../../jobs.ts'
import type { Context } from '../context.ts'

export async function push({ notifier, pushes }: Context, { jobs }: Input<'push'>): Promise<PushOutcome[]> {
  if (jobs.length === 0) return []
  notifier.stir()
  return pushes.add(
    jobs.map((job) => ({ ...job, data: copyEncoded(job.data) })),
    0,
  )
}
