import type { Input } from '../../../store.ts'
import type { ExtendOutcome } from '../../../values/jobs/records.ts'
import { copyEncoded } from '../../jobs.ts'
import { DEFAULTS } from '../queue.ts'
import type { MemoryState } from '../state.ts'

export function extend(state: MemoryState, { queue: name, lease: asked, items }: Input<'extend'>): ExtendOutcome[] {
  const lease = asked ?? (state.queues.get(name)?.settings ?? DEFAULTS).lease
  const until = state.now() + lease
  return items.map(({ id, fence, progress, log }) => {
    const job = state.jobs.get(id)
    if (job === undefined || job.queue !== name || job.fence !== fence) return 'stale'
    if (job.state !== 'running') return job.state === 'cancelled' ? 'cancelled' : 'stale'
    if (progress !== null) job.progress = copyEncoded(progress)
    if (log) job.addLog(log)
    job.leaseUntil = Math.max(job.leaseUntil, until)
    return 'ok'
  })
}
