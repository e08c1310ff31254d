import type { NewJob, PushOutcome } from '../../../store.ts'
import { lacking } from '../capabilities.ts'
import { send, type StoreContext, totalsOf, valuesOf } from '../context.ts'
import { parcelOf } from '../wire.ts'

export async function push(context: StoreContext, { jobs }: { jobs: readonly NewJob[] }): Promise<PushOutcome[]> {
  if (jobs.some(({ key }) => key !== null)) throw lacking('keys', 'a key')
  const queues = new Set(jobs.map(({ queue }) => queue))
  const room = new Map<string, number>()
  for (const queue of queues) room.set(queue, await roomIn(context, queue))
  const now = context.now()
  const fits = jobs.map(({ queue }) => {
    const left = room.get(queue) ?? 0
    room.set(queue, left - 1)
    return left > 0
  })
  const parcels = jobs.filter((_, index) => fits[index]).map((job) => parcelOf(job, valuesOf(context, job.queue), now))
  const sending = send(context, parcels)
  count(context, parcels, 1)
  const taken = await sending.finally(() => count(context, parcels, -1))
  return jobs.map(({ id, queue }, index) => {
    const isPushed = fits[index] === true && taken.shift() === true
    if (isPushed) totalsOf(context, queue).pushed++
    return { status: isPushed ? 'pushed' : 'full', id }
  })
}

/** Jobs that are on their way, by queue. */
const sent = new WeakMap<StoreContext, Map<string, number>>()

function count(context: StoreContext, parcels: readonly { queue: string }[], change: number): void {
  const counts = sent.get(context) ?? new Map<string, number>()
  sent.set(context, counts)
  for (const { queue } of parcels) counts.set(queue, (counts.get(queue) ?? 0) + change)
}

/** A limit of RabbitMQ's own lets a burst through whole, and cannot be changed later. So jobs are counted before the push. */
async function roomIn(context: StoreContext, queue: string): Promise<number> {
  const { capacity } = valuesOf(context, queue)
  if (capacity === null) return Number.POSITIVE_INFINITY
  const onTheWay = sent.get(context)?.get(queue) ?? 0
  const names = context.registry.lines(queue).map((line) => context.names.line(queue, line))
  const counts = await Promise.all(names.map((name) => context.topology.count(name)))
  return capacity - counts.reduce<number>((sum, each) => sum + (each ?? 0), onTheWay)
}
