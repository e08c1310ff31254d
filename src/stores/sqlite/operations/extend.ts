import type { Input } from '../../../store.ts'
import type { ExtendOutcome } from '../../../values/jobs/records.ts'
import { addLog } from '../job-log.ts'
import { DEFAULT_LEASE, type StoreContext } from '../queues.ts'

export function extend(
  { statements, queues, now }: StoreContext,
  { queue, lease: asked, items }: Input<'extend'>,
): ExtendOutcome[] {
  const lease_until = now + (asked ?? queues.find(queue)?.settings.lease ?? DEFAULT_LEASE)
  return items.map(({ id, fence, progress, log }) => {
    const hold = { queue, id, fence }
    addLog(statements, hold, log)
    const news = { encoding: progress?.encoding ?? null, progress: progress?.body ?? null }
    if (statements.run('extend/extend', { ...hold, lease_until, ...news }) === 1) return 'ok'
    return statements.get('extend/cancelled', hold) === undefined ? 'stale' : 'cancelled'
  })
}
