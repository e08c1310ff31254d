import type { NewJob, PushOutcome } from '../../../store.ts'
import { type StoreContext, send, sourceOf } from '../context.ts'
import { parcelOf } from '../wire.ts'

export async function push(context: StoreContext, { jobs }: { jobs: readonly NewJob[] }): Promise<PushOutcome[]> {
  const left = new Map<string, number>()
  for (const queue of new Set(jobs.map((job) => job.queue))) left.set(queue, await roomIn(context, queue))
  const fits = jobs.map(({ queue }) => {
    const room = left.get(queue) ?? 0
    left.set(queue, room - 1)
    return room > 0
  })
  const now = context.now()
  const fitting = jobs.filter((_, index) => fits[index])
  const parcels = fitting.map((job) => parcelOf(job, context.registry.of(job.queue).values, now))
  count(context, fitting, 1)
  const sent = await send(context, parcels).finally(() => count(context, fitting, -1))
  return jobs.map(({ id, queue }, index) => {
    const isPushed = fits[index] === true && sent.shift() === 'stored'
    if (isPushed) sourceOf(context, queue).totals.pushed++
    return { status: isPushed ? 'pushed' : 'full', id }
  })
}

/** Jobs that are on their way, by queue. */
const sending = new WeakMap<StoreContext, Map<string, number>>()

function count(context: StoreContext, jobs: readonly NewJob[], change: number): void {
  const counts = sending.get(context) ?? new Map<string, number>()
  sending.set(context, counts)
  for (const { queue } of jobs) counts.set(queue, (counts.get(queue) ?? 0) + change)
}

/** Jobs are counted before a push, since the arguments of a queue of RabbitMQ's own cannot be changed, and know one line only. */
async function roomIn(context: StoreContext, queue: string): Promise<number> {
  const { registry, names, topology } = context
  const { lines, values } = registry.of(queue)
  if (values.capacity === null) return Number.POSITIVE_INFINITY
  const counts = await Promise.all(lines.map((line) => topology.count(names.line(queue, line))))
  const waiting = counts.reduce<number>((sum, each) => sum + (each ?? 0), sourceOf(context, queue).parked)
  return values.capacity - waiting - (sending.get(context)?.get(queue) ?? 0)
}
