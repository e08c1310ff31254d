/** Makes the exchanges and queues in RabbitMQ, each when it is first needed. */
import type { Channel } from 'amqplib'
import type { Link } from './connection/link.ts'
import { StandingChannel } from './connection/standing-channel.ts'
import { isMissing } from './errors.ts'
import { againOf, DEAD, type Names, waitHeader } from './names.ts'
import { LONGEST_WAIT, SHORTEST_WAIT } from './waits.ts'

/** In ms: how long delayed jobs whose line is gone are kept for people to see. */
const KEEP_UNROUTED = 7 * 24 * 3_600_000
/** RabbitMQ 4 drops a message after 20 deliveries unless told otherwise. Its limits of length refuse, instead of dropping old jobs. */
const QUORUM = { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000, 'x-overflow': 'reject-publish' }

export class Topology {
  readonly #channel: StandingChannel<Channel>
  /** What is under way on the channel. A question about a queue that is not there ends it, so all go one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  readonly #names: Names
  readonly #made = new Map<string, Promise<unknown>>()

  constructor(link: Link, names: Names) {
    this.#channel = new StandingChannel<Channel>(link, (model) => model.createChannel())
    this.#names = names
  }

  /** Both lines of a priority. That of new jobs is the last that is made: who finds it finds both. @param tell tells others of them */
  async line(queue: string, priority: number, tell: () => Promise<unknown>): Promise<void> {
    await this.#once(this.#names.due, (channel) => this.#makeDue(channel))
    await this.#once(this.#names.line(queue, `${priority}`), async (channel, name) => {
      const again = this.#names.line(queue, againOf(priority))
      await declare(channel, again)
      await channel.bindQueue(again, this.#names.due, again)
      await declare(channel, name)
      await tell()
    })
  }

  /** The exchange by which processes tell of new lines. */
  lines(): Promise<unknown> {
    return this.#once(this.#names.lines, (channel, name) => channel.assertExchange(name, 'fanout'))
  }

  dead(queue: string): Promise<unknown> {
    return this.#once(this.#names.line(queue, DEAD), (channel, name) => declare(channel, name))
  }

  /** The queue of one wait; before the first one, the exchanges of all. */
  async wait(ms: number): Promise<void> {
    await this.#once('waits', async (channel) => {
      // A message without the header of a wait goes on to the next shorter one.
      for (let each = SHORTEST_WAIT; each <= LONGEST_WAIT; each *= 2) {
        await channel.assertExchange(this.#names.wait(each), 'headers', { alternateExchange: this.#after(each) })
      }
    })
    await this.#once(this.#names.wait(ms), async (channel, name) => {
      // At least once: a message leaves only when the next queue has it.
      const safely = { 'x-dead-letter-strategy': 'at-least-once', 'x-dead-letter-exchange': this.#after(ms) }
      await declare(channel, name, { ...safely, 'x-message-ttl': ms })
      await channel.bindQueue(name, name, '', { [waitHeader(ms)]: true })
    })
  }

  /** How many jobs wait there; null: there is no such queue. @throws StoreUnavailable, Closed */
  async count(name: string): Promise<number | null> {
    try {
      return (await this.#run((channel) => channel.checkQueue(name))).messageCount
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  /** Something that was made is gone: all is made again when it is next needed. */
  forget(): void {
    this.#made.clear()
  }

  #after = (wait: number): string => (wait === SHORTEST_WAIT ? this.#names.due : this.#names.wait(wait / 2))

  async #makeDue(channel: Channel): Promise<void> {
    const { due, unrouted } = this.#names
    await channel.assertExchange(unrouted, 'fanout')
    await declare(channel, unrouted, { 'x-message-ttl': KEEP_UNROUTED })
    await channel.bindQueue(unrouted, unrouted, '')
    await channel.assertExchange(due, 'direct', { alternateExchange: unrouted })
  }

  #once(name: string, make: (channel: Channel, name: string) => Promise<unknown>): Promise<unknown> {
    const known = this.#made.get(name)
    if (known !== undefined) return known
    const making = this.#run((channel) => make(channel, name))
    this.#made.set(name, making)
    making.catch(() => this.#made.delete(name))
    return making
  }

  #run<T>(act: (channel: Channel) => Promise<T>): Promise<T> {
    const running = this.#last.then(() => this.#channel.run(act))
    this.#last = running.catch(() => undefined)
    return running
  }
}

const declare = (channel: Channel, name: string, args: object = {}): Promise<unknown> =>
  channel.assertQueue(name, { arguments: { ...QUORUM, ...args } })
