/** Makes the exchanges and queues in RabbitMQ, each when it is first needed, and never twice with other arguments. */
import type { Channel } from 'amqplib'
import type { Lane } from './connection/link.ts'
import { isMissing } from './errors.ts'
import { FOREIGN, isAgain, type Line, type Names } from './names.ts'
import type { Registry } from './registry.ts'
import { stepOf } from './wire.ts'

/** Milliseconds that delayed jobs of a removed queue are kept for people to see. */
const KEEP_UNROUTED = 7 * 24 * 3_600_000

/** RabbitMQ 4 drops a message after 20 deliveries unless told otherwise; attempts are counted by the store. */
const QUORUM = { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000 }

export class Topology {
  readonly #admin: Lane<Channel>
  readonly #names: Names
  readonly #registry: Registry
  readonly #made = new Map<string, Promise<void>>()

  constructor(admin: Lane<Channel>, names: Names, registry: Registry) {
    this.#admin = admin
    this.#names = names
    this.#registry = registry
  }

  /** @param gone it was there, and is no more */
  async line(queue: string, line: Line, gone = false): Promise<void> {
    if (line === FOREIGN || (!gone && this.#registry.queues.get(queue)?.lines.has(line))) return
    const name = this.#names.line(queue, line)
    if (gone) this.#made.delete(name)
    await this.#once(name, async (channel) => {
      await declare(channel, name, QUORUM)
      if (isAgain(line)) await channel.bindQueue(name, this.#names.router, name)
    })
    await this.#registry.append({ queue, line })
  }

  dead(queue: string): Promise<void> {
    return this.#once(this.#names.dead(queue), (channel, name) => declare(channel, name, QUORUM))
  }

  /** All that a delay of so many milliseconds needs for its first step. */
  async delay(delay: number): Promise<void> {
    const step = stepOf(delay)
    const { router, unrouted } = this.#names
    await this.#once(unrouted, async (channel, name) => {
      await channel.assertExchange(name, 'fanout')
      await declare(channel, name, { ...QUORUM, 'x-message-ttl': KEEP_UNROUTED })
      await channel.bindQueue(name, name, '')
    })
    await this.#once(this.#names.delay(step), async (channel, name) => {
      await channel.assertExchange(name, 'fanout')
      // A message leaves only when the line to which it goes has it.
      const safely = { 'x-dead-letter-strategy': 'at-least-once', 'x-overflow': 'reject-publish' }
      await declare(channel, name, { ...QUORUM, ...safely, 'x-message-ttl': step, 'x-dead-letter-exchange': router })
      await channel.bindQueue(name, name, '')
    })
  }

  /** The exchange to which lines are bound; there before any of them. */
  async start(): Promise<void> {
    const { router, unrouted } = this.#names
    await this.#admin.run((channel) => channel.assertExchange(router, 'direct', { alternateExchange: unrouted }))
  }

  /** How many jobs wait there; null: there is no such queue. */
  async count(name: string): Promise<number | null> {
    try {
      return await this.#admin.run(async (channel) => (await channel.checkQueue(name)).messageCount)
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  async remove(queue: string, lines: readonly Line[]): Promise<void> {
    const names = [...lines.map((line) => this.#names.line(queue, line)), this.#names.dead(queue)]
    for (const name of names) this.#made.delete(name)
    await this.#admin.run((channel) => Promise.all(names.map((name) => channel.deleteQueue(name))))
  }

  #once(name: string, make: (channel: Channel, name: string) => Promise<unknown>): Promise<void> {
    const known = this.#made.get(name)
    if (known !== undefined) return known
    const making = this.#admin.run(async (channel) => {
      await make(channel, name)
    })
    this.#made.set(name, making)
    making.catch(() => this.#made.delete(name))
    return making
  }
}

const declare = (channel: Channel, name: string, args: object): Promise<unknown> =>
  channel.assertQueue(name, { arguments: args })
