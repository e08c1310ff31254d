/** What the operations of one RabbitMQ store share. */
import type { QueueStats, Swept } from '../../store.ts'
import type { Bells } from '../bells.ts'
import { DEFAULTS } from '../defaults.ts'
import type { Link } from './connection/link.ts'
import type { Letter, Publisher } from './connection/publisher.ts'
import { closed } from './errors.ts'
import { isAgain, type Names } from './names.ts'
import type { Registry } from './registry.ts'
import type { Settings } from './settings.ts'
import type { Source } from './source.ts'
import type { Topology } from './topology.ts'
import { letterOf, type Parcel } from './wire.ts'

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
  /** What this process did. */
  totals: Map<string, QueueStats['totals']>
  /** Leases that were lost since the last sweep. */
  lost: Swept['lost']
}

export function assertOpen({ links }: StoreContext): void {
  if (links.out.isClosed) throw closed()
}

export const valuesOf = ({ registry }: StoreContext, queue: string): typeof DEFAULTS =>
  registry.queues.get(queue)?.values ?? DEFAULTS

export function totalsOf({ totals }: StoreContext, queue: string): QueueStats['totals'] {
  const known = totals.get(queue)
  if (known !== undefined) return known
  const fresh = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }
  totals.set(queue, fresh)
  return fresh
}

/** Puts jobs into their lines. @returns of each, whether RabbitMQ took it @throws StoreUnavailable, StoreFull, Closed */
export async function send(context: StoreContext, parcels: readonly Parcel[]): Promise<boolean[]> {
  await prepare(context, parcels)
  const letters = parcels.map((parcel) => letterOf(context.names, parcel))
  const answers = await context.publisher.publish(letters)
  const lost = parcels.filter((_, index) => answers[index] === 'unrouted')
  if (lost.length === 0) return answers.map((answer) => answer === 'stored')
  // Their lines were removed a moment ago: they are made again.
  for (const { queue, line } of lost) await context.topology.line(queue, line, true)
  const again = await context.publisher.publish(lost.map((parcel) => letterOf(context.names, parcel)))
  return answers.map((answer) => (answer === 'unrouted' ? again.shift() === 'stored' : answer === 'stored'))
}

async function prepare(context: StoreContext, parcels: readonly Parcel[]): Promise<void> {
  const { registry, topology } = context
  for (const { queue, line, delay } of parcels) {
    if (!registry.queues.get(queue)?.lines.has(line)) await topology.line(queue, line)
    if (delay <= 0) continue
    const again = `${line[0]}.again`
    if (!isAgain(line) && !registry.queues.get(queue)?.lines.has(again)) await topology.line(queue, again)
    await topology.delay(delay)
  }
}

/** Buries jobs, or lets them go if dead jobs are not kept. */
export async function bury(context: StoreContext, queue: string, letters: readonly Letter[]): Promise<void> {
  if (letters.length === 0) return
  await context.topology.dead(queue)
  await context.publisher.publish(letters)
}
