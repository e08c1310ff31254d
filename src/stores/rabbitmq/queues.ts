/**
 * The queues that this process knows: the settings that its code gave, and the priorities that have lines. AMQP lists no queues. So lines
 * are looked for once; after that, whoever makes one says so by an exchange that every process hears.
 */
import { randomUUID } from 'node:crypto'
import type { Channel, ChannelModel } from 'amqplib'
import { newId } from '../../values/jobs/ids.ts'
import type { SettingsChange } from '../../values/settings/settings.ts'
import { DEFAULTS } from '../defaults.ts'
import { NOTHING_GIVEN, settle } from '../given-settings.ts'
import type { Link } from './connection/link.ts'
import type { Publisher } from './connection/publisher.ts'
import { StandingChannel } from './connection/standing-channel.ts'
import { againOf, FOREIGN, type Line, type Names } from './names.ts'
import type { Topology } from './topology.ts'

interface KnownQueue {
  /** Highest first. */
  priorities: readonly number[]
  values: typeof DEFAULTS
}

const HIGHEST = 9
const UNKNOWN: KnownQueue = { priorities: [], values: DEFAULTS }

export class Queues {
  readonly #names: Names
  readonly #topology: Topology
  readonly #publisher: Publisher
  readonly #onChange: (queue: string) => void
  readonly #known = new Map<string, KnownQueue>()
  /** Queues whose lines were looked for since we hear of new ones. */
  readonly #found = new Map<string, Promise<void>>()
  readonly #hearing: StandingChannel<Channel>

  constructor(link: Link, names: Names, topology: Topology, publisher: Publisher, onChange: (queue: string) => void) {
    this.#names = names
    this.#topology = topology
    this.#publisher = publisher
    this.#onChange = onChange
    const hear = (model: ChannelModel): Promise<Channel> => this.#hear(model)
    this.#hearing = new StandingChannel<Channel>(link, hear, () => this.#found.clear())
  }

  get names(): string[] {
    return [...this.#known.keys()]
  }

  of(queue: string): KnownQueue {
    return this.#known.get(queue) ?? UNKNOWN
  }

  has(queue: string): boolean {
    return this.#known.has(queue)
  }

  /** Of each priority, jobs that come back go before new ones. */
  linesOf(queue: string, withForeign: boolean): Line[] {
    const own = this.of(queue).priorities.flatMap((priority) => [againOf(priority), `${priority}`])
    return withForeign ? [...own, FOREIGN] : own
  }

  configure({ queue, ...change }: SettingsChange): void {
    const { apply } = settle(NOTHING_GIVEN, { queue, ...change })
    this.#change(queue, { values: { ...this.of(queue).values, ...apply } })
  }

  /** Resolves when all lines are known that there are. @throws StoreUnavailable, Closed */
  async find(queue: string): Promise<void> {
    await this.#hearing.run(async () => undefined)
    const known = this.#found.get(queue)
    if (known !== undefined) return known
    const finding = this.#look(queue)
    this.#found.set(queue, finding)
    finding.catch(() => this.#found.delete(queue))
    return finding
  }

  /** Makes the lines of a priority, and tells the other processes. @throws StoreUnavailable, StoreFull, Closed */
  async make(queue: string, priority: number): Promise<void> {
    await this.#topology.lines()
    await this.#topology.line(queue, priority, () => {
      this.#add(queue, priority)
      const body = Buffer.from(JSON.stringify({ queue, priority }))
      const properties = { messageId: newId(), contentType: 'application/json' }
      return this.#publisher.publish([{ exchange: this.#names.lines, key: '', body, properties }])
    })
  }

  async #look(queue: string): Promise<void> {
    for (let priority = HIGHEST; priority >= 0; priority--) {
      const count = await this.#topology.count(this.#names.line(queue, `${priority}`))
      if (count !== null) this.#add(queue, priority)
    }
  }

  async #hear(model: ChannelModel): Promise<Channel> {
    const channel = await model.createChannel()
    await this.#topology.lines()
    const { queue } = await channel.assertQueue(`${this.#names.lines}.${randomUUID()}`, { exclusive: true })
    await channel.bindQueue(queue, this.#names.lines, '')
    const take = (message: { content: Buffer } | null): void => {
      // Somebody deleted the queue: what was said meanwhile is not known, so all lines are looked for again.
      if (message === null) {
        channel.close().catch(() => undefined)
        return
      }
      const { queue, priority } = JSON.parse(message.content.toString())
      if (typeof queue === 'string' && typeof priority === 'number') this.#add(queue, priority)
    }
    await channel.consume(queue, take, { noAck: true })
    return channel
  }

  #add(queue: string, priority: number): void {
    const { priorities } = this.of(queue)
    if (priorities.includes(priority)) return
    this.#change(queue, { priorities: [...priorities, priority].sort((a, b) => b - a) })
  }

  #change(queue: string, change: Partial<KnownQueue>): void {
    this.#known.set(queue, { ...this.of(queue), ...change })
    this.#onChange(queue)
  }
}
