import type { Swept } from '../../../store.ts'
import type { StoreContext } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Delivery, Source } from '../source.ts'
import { LEASE_LOST, sendBack } from '../traffic.ts'
import { copyOf } from '../wire.ts'

/** Of this process alone: RabbitMQ takes back the jobs of a process that is lost, and moves what is due, by itself. */
export async function sweep(context: StoreContext, { limit }: { limit: number }): Promise<Swept> {
  const now = context.now()
  let ended = 0
  for (const [queue, source] of context.sources) {
    const silent = source.held
      .filter(({ leaseUntil, isEnding }) => leaseUntil <= now && !isEnding)
      .slice(0, limit - ended)
    const taken = silent.flatMap(({ job }) => source.beginEnd(job) ?? [])
    if (taken.length > 0) await source.end(taken, () => takeBack(context, queue, source, taken))
    ended += taken.length
  }
  const lost = context.lost.splice(0, limit)
  const more = ended >= limit || context.lost.length > 0
  return { lost, promoted: 0, expired: 0, more, nextDue: null, queues: context.queues.names.length }
}

async function takeBack(context: StoreContext, queue: string, source: Source, silent: Delivery[]): Promise<'ok'[]> {
  const isLast = ({ job }: Delivery): boolean => job.attempt >= job.attempts
  const changes = ({ job }: Delivery) => ({ [HEADER.due]: context.now(), [HEADER.attempt]: job.attempt })
  await sendBack(
    context,
    silent.filter((each) => !isLast(each)).map((each) => copyOf(each, queue, changes(each))),
  )
  await source.bury(silent.filter(isLast).map((each) => [each, LEASE_LOST] as const))
  source.totals.lost += silent.length
  context.bells.ring('work', queue)
  for (const each of silent) {
    const { id, attempt } = each.job
    context.lost.push({ id, queue, attempt, state: isLast(each) ? 'dead' : 'waiting' })
  }
  return silent.map(() => 'ok')
}
