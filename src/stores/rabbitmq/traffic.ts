/** How jobs get into RabbitMQ: into their lines, back there, and among the dead. */
import type { Swept } from '../../values/operations/swept.ts'
import type { Bells } from '../bells.ts'
import type { Link } from './connection/link.ts'
import type { Published, Publisher } from './connection/publisher.ts'
import { isMissing } from './errors.ts'
import { DEAD, type Names, priorityOf } from './names.ts'
import type { Queues } from './queues.ts'
import type { Settings } from './settings.ts'
import type { Topology } from './topology.ts'
import { waitsOf } from './waits.ts'
import { letterOf, type Parcel, writableOf } from './wire.ts'

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
  if (parcels.length === 0) return []
  const answers = await sendOnce(traffic, parcels)
  const unrouted = parcels.filter((_, index) => answers[index] === 'unrouted')
  if (unrouted.length === 0) return answers
  // Somebody deleted their lines. They are made again.
  traffic.topology.forget()
  const again = await sendOnce(traffic, unrouted)
  return answers.map((answer) => (answer === 'unrouted' ? (again.shift() ?? answer) : answer))
}

/** As `send`, for jobs that were in RabbitMQ before: what cannot be written of them is left out. @throws as `send` */
export async function sendBack(traffic: Traffic, parcels: readonly Parcel[]): Promise<Published[]> {
  const answers = await send(traffic, parcels)
  const unwritable = parcels.filter((_, index) => answers[index] === 'unwritable')
  const again = await send(traffic, unwritable.map(writableOf))
  return answers.map((answer) => (answer === 'unwritable' ? (again.shift() ?? answer) : answer))
}

async function sendOnce(traffic: Traffic, parcels: readonly Parcel[]): Promise<Published[]> {
  const { topology, names, publisher, queues } = traffic
  try {
    for (const { queue, line, delay } of parcels) {
      await (line === DEAD ? topology.dead(queue) : queues.make(queue, priorityOf(line)))
      if (delay > 0) for (const wait of waitsOf(delay)) await topology.wait(wait)
    }
    return await publisher.publish(parcels.map((parcel) => letterOf(names, parcel)))
  } catch (error) {
    if (error instanceof Error && isMissing(error.cause)) topology.forget()
    throw error
  }
}
