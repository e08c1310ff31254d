import type { Hold, Swept } from '../../../store.ts'
import type { StoreContext } from '../context.ts'
import { HEADER } from '../names.ts'
import type { Delivery, Held, Source } from '../source.ts'
import { bury, LEASE_LOST, sendBack } from '../traffic.ts'
import { copyOf } from '../wire.ts'

/** Of this process alone: RabbitMQ takes back the jobs of a process that is lost, and moves what is due, by itself. */
export async function sweep(context: StoreContext, { limit }: { limit: number }): Promise<Swept> {
  const now = context.now()
  let ended = 0
  for (const [queue, source] of context.sources) {
    const silent = source.held.filter(({ leaseUntil, isEnding }) => leaseUntil <= now && !isEnding)
    const holds = silent.slice(0, limit - ended).map(({ job }) => job)
    await source.end(holds, (held) => takeBack(context, queue, source, held))
    source.totals.lost += holds.length
    ended += holds.length
  }
  const lost = context.lost.splice(0, limit)
  const more = ended >= limit || context.lost.length > 0
  return { lost, promoted: 0, expired: 0, more, nextDue: null, queues: context.queues.names.length, schedules: null }
}

async function takeBack(
  context: StoreContext,
  queue: string,
  source: Source,
  held: readonly Held<Hold>[],
): Promise<'ok'[]> {
  const silent = held.map(({ delivery }) => delivery)
  const isLast = ({ job }: Delivery): boolean => job.attempt >= job.attempts
  const changes = ({ job }: Delivery) => ({ [HEADER.due]: context.now(), [HEADER.attempt]: job.attempt })
  const others = silent.filter((each) => !isLast(each))
  await sendBack(
    context,
    others.map((each) => copyOf(each, queue, changes(each))),
  )
  const dead = silent.filter(isLast).map((each) => [each, LEASE_LOST] as const)
  await bury(context, queue, dead, source.totals)
  context.bells.ring('work', queue)
  for (const each of silent) {
    const { id, attempt } = each.job
    context.lost.push({ id, queue, attempt, state: isLast(each) ? 'dead' : 'waiting' })
  }
  return silent.map(() => 'ok')
}
