/** What the operations of one RabbitMQ store share. */
import type { JobError, Swept } from '../../store.ts'
import type { Bells } from '../bells.ts'
import type { Link } from './connection/link.ts'
import type { Published, Publisher } from './connection/publisher.ts'
import { closed, isMissing, refused } from './errors.ts'
import { againOf, HEADER, type Names, priorityOf } from './names.ts'
import type { Registry } from './registry.ts'
import type { Settings } from './settings.ts'
import { type Delivery, Source } from './source.ts'
import type { Topology } from './topology.ts'
import { waitsOf } from './waits.ts'
import { copyOf, deadLetter, letterOf, type Parcel } from './wire.ts'

export interface StoreContext {
  settings: Settings
  names: Names
  now(): number
  /** For pushes, and for claims. */
  links: { out: Link; in: Link }
  publisher: Publisher
  registry: Registry
  topology: Topology
  sources: Map<string, Source>
  bells: Bells
  /** Leases that were lost since the last sweep. */
  lost: Swept['lost']
}

export function assertOpen({ links }: StoreContext): void {
  if (links.out.isClosed) throw closed()
}

export function sourceOf(context: StoreContext, queue: string): Source {
  const known = context.sources.get(queue)
  if (known !== undefined) return known
  const source: Source = new Source(context, queue, {
    delayFurther: (delivery) => sendBack(context, [copyOf(delivery, queue, {}, delivery.remaining)]),
    putBack: (deliveries) =>
      sendBack(
        context,
        deliveries.map((each) => copyOf(each, queue, { [HEADER.attempt]: each.job.attempt - 1 })),
      ),
    async bury(delivery) {
      const { id, attempts } = delivery.job
      await bury(context, queue, [{ ...delivery, job: { ...delivery.job, attempt: attempts } }], () => LEASE_LOST)
      context.lost.push({ id, queue, attempt: attempts, state: 'dead' })
    },
  })
  context.sources.set(queue, source)
  return source
}

/** Puts jobs into their lines. @throws StoreUnavailable, StoreFull, Closed */
export async function send(context: StoreContext, parcels: readonly Parcel[]): Promise<Published[]> {
  const answers = await sendOnce(context, parcels)
  const unrouted = parcels.filter((_, index) => answers[index] === 'unrouted')
  if (unrouted.length === 0) return answers
  // Somebody deleted their lines. They are made again.
  context.topology.forget()
  const again = await sendOnce(context, unrouted)
  return answers.map((answer) => (answer === 'unrouted' ? (again.shift() ?? answer) : answer))
}

/** As `send`, for jobs that no limit may refuse. @throws StoreUnavailable, StoreFull, Closed */
export async function sendBack(context: StoreContext, parcels: readonly Parcel[]): Promise<void> {
  const answers = await send(context, parcels)
  if (answers.some((answer) => answer !== 'stored')) throw refused(context.settings.where)
}

async function sendOnce(context: StoreContext, parcels: readonly Parcel[]): Promise<Published[]> {
  const { registry, topology, names, publisher } = context
  for (const { queue, line: direct, delay } of parcels) {
    const line = delay > 0 ? againOf(priorityOf(direct)) : direct
    await topology.line(queue, line)
    if (!registry.of(queue).lines.includes(line)) await registry.append({ queue, line })
    if (delay > 0) for (const wait of waitsOf(delay).waits) await topology.wait(wait)
  }
  try {
    return await publisher.publish(parcels.map((parcel) => letterOf(names, parcel)))
  } catch (error) {
    if (error instanceof Error && isMissing(error.cause)) topology.forget()
    throw error
  }
}

export const LEASE_LOST: JobError = {
  code: 'LeaseLost',
  name: 'MillpondError',
  message: 'its worker fell silent or was lost, and no attempt is left',
}

/** The jobs are dead: they are kept for as long as their queue keeps dead jobs. @throws StoreUnavailable, StoreFull, Closed */
export async function bury<Each extends Delivery>(
  context: StoreContext,
  queue: string,
  deliveries: readonly Each[],
  errorOf: (delivery: Each) => JobError,
): Promise<void> {
  if (deliveries.length === 0) return
  const { keepDead } = context.registry.of(queue).values
  sourceOf(context, queue).totals.dead += deliveries.length
  if (keepDead === 0) return
  await context.topology.dead(queue)
  const letters = deliveries.map((delivery) => {
    const parcel = copyOf(delivery, queue, { [HEADER.attempt]: delivery.job.attempt })
    return deadLetter(context.names, parcel, errorOf(delivery), keepDead)
  })
  await context.publisher.publish(letters)
}
