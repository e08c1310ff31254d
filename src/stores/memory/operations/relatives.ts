import type { Input } from '../../../store.ts'
import type { Relatives } from '../../../values/operations/requests.ts'
import { relativesOf } from '../links.ts'
import type { MemoryState } from '../state.ts'

export function relatives(state: MemoryState, { ids, limit }: Input<'relatives'>): (Relatives | null)[] {
  return ids.map((id) => {
    const job = state.jobs.get(id)
    return job === undefined ? null : relativesOf(job, limit)
  })
}
