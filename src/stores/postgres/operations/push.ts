import type { Input } from '../../../store.ts'
import type { PushOutcome } from '../../../values/jobs/records.ts'
import { copyEncoded } from '../../jobs.ts'
import type { StoreContext } from '../context.ts'
import { settledOf } from '../pushes.ts'

export async function push({ notifier, pushes }: StoreContext, input: Input<'push'>): Promise<PushOutcome[]> {
  const { jobs, whole = false } = input
  if (jobs.length === 0) return []
  notifier.stir()
  const outcomes = await pushes.add({ jobs: jobs.map((job) => ({ ...job, data: copyEncoded(job.data) })), whole }, 0)
  return input.deferred === true ? outcomes : Promise.all(outcomes.map(settledOf))
}
