import type { Hold, JobError } from '../../../values/jobs/records.ts'
import type { Swept } from '../../../values/operations/swept.ts'
import type { StoreContext } from '../context.ts'
import type { Source } from '../source.ts'
import { endAttempts } from './end.ts'

const LEASE_LOST: JobError = {
  code: 'LeaseLost',
  name: 'MillpondError',
  message: 'its worker fell silent or was lost, and no attempt is left',
}

/** Of this process alone: RabbitMQ takes back the jobs of a process that is lost, and moves what is due, by itself. */
export async function sweep(context: StoreContext, { limit }: { limit: number }): Promise<Swept> {
  const now = context.now()
  let ended = 0
  for (const source of context.sources.values()) {
    const silent = source.held.filter(({ leaseUntil, isEnding }) => leaseUntil <= now && !isEnding)
    const holds = silent.slice(0, limit - ended).map(({ job }) => job)
    await takeBack(context, source, holds)
    ended += holds.length
  }
  const lost = context.lost.splice(0, limit)
  const more = ended >= limit || context.lost.length > 0
  return { lost, promoted: 0, expired: 0, more, nextDue: null, queues: context.queues.names.length, schedules: null }
}

/** Jobs whose worker was lost. */
export async function takeBack(context: StoreContext, source: Source, holds: readonly Hold[]): Promise<void> {
  await source.end(holds, async (held) => {
    const outcomeOf = await endAttempts(context, source, held, () => ({ error: LEASE_LOST, delay: 0 }))
    context.bells.ring('work', source.queue)
    for (const each of held) {
      const { id, attempt } = each.delivery.job
      const outcome = outcomeOf(each)
      if (outcome === 'full') continue
      source.totals.lost++
      context.lost.push({ id, queue: source.queue, attempt, state: outcome === 'dead' ? 'dead' : 'waiting' })
    }
    return outcomeOf
  })
}
