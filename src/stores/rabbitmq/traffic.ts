/** How jobs get into RabbitMQ: into their lines, back there, and among the dead. */
import type { JobError, Swept, Totals } from '../../store.ts'
import type { Bells } from '../bells.ts'
import type { Link } from './connection/link.ts'
import type { Published, Publisher } from './connection/publisher.ts'
import { isMissing, refused } from './errors.ts'
import { HEADER, type Names, priorityOf } from './names.ts'
import type { Queues } from './queues.ts'
import type { Settings } from './settings.ts'
import type { Topology } from './topology.ts'
import { waitsOf } from './waits.ts'
import { type Arrived, copyOf, deadLetter, letterOf, type Parcel } from './wire.ts'

export interface Traffic {
  settings: Settings
  names: Names
  now(): number
  /** For pushes, and for claims. */
  links: { out: Link; in: Link }
  publisher: Publisher
  queues: Queues
  topology: Topology
  bells: Bells
  /** Leases that were lost since the last sweep. */
  lost: Swept['lost']
}

/** Puts jobs into their lines. @throws StoreUnavailable, StoreFull, Closed */
export async function send(traffic: Traffic, parcels: readonly Parcel[]): Promise<Published[]> {
  const answers = await sendOnce(traffic, parcels)
  const unrouted = parcels.filter((_, index) => answers[index] === 'unrouted')
  if (unrouted.length === 0) return answers
  // Somebody deleted their lines. They are made again.
  traffic.topology.forget()
  const again = await sendOnce(traffic, unrouted)
  return answers.map((answer) => (answer === 'unrouted' ? (again.shift() ?? answer) : answer))
}

/** As `send`, for jobs that no limit may refuse. @throws StoreUnavailable, StoreFull, Closed */
export async function sendBack(traffic: Traffic, parcels: readonly Parcel[]): Promise<void> {
  const answers = await send(traffic, parcels)
  if (answers.some((answer) => answer !== 'stored')) throw refused(traffic.settings.where)
}

async function sendOnce(traffic: Traffic, parcels: readonly Parcel[]): Promise<Published[]> {
  const { topology, names, publisher, queues } = traffic
  for (const { queue, line, delay } of parcels) {
    if (!topology.has(names.line(queue, `${priorityOf(line)}`))) await queues.make(queue, priorityOf(line))
    if (delay > 0) for (const wait of waitsOf(delay)) await topology.wait(wait)
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

/** Keeps jobs without an attempt left for as long as their queue says. @throws StoreUnavailable, StoreFull, Closed */
export async function bury(
  traffic: Traffic,
  queue: string,
  dead: readonly (readonly [Arrived, JobError])[],
  totals: Totals,
): Promise<void> {
  const { keepDead } = traffic.queues.of(queue).values
  if (dead.length > 0 && keepDead > 0) {
    await traffic.topology.dead(queue)
    const letters = dead.map(([arrived, error]) => {
      const parcel = copyOf(arrived, queue, { [HEADER.attempt]: arrived.job.attempt })
      return deadLetter(traffic.names, parcel, error, keepDead)
    })
    await traffic.publisher.publish(letters)
  }
  totals.dead += dead.length
  for (const [{ job }] of dead) traffic.bells.ring('finished', queue, job.id)
}
