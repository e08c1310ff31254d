/**
 * Which queues there are, their lines and their settings. AMQP lists no queues, and keeps nothing beside them. So a stream holds it all as
 * a log, which every process reads from its beginning and goes on reading. An entry is JSON, one of:
 *
 *   { queue, line }       the line was made
 *   { queue, change }     the settings were changed, as by `configure`
 */
import type { Channel, ConsumeMessage } from 'amqplib'
import { type GivenSettings, type SettingName, type SettingsChange, setsNothing } from '../../store.ts'
import { newId } from '../../values/ids.ts'
import { DEFAULTS } from '../defaults.ts'
import { NOTHING_GIVEN, settle } from '../given-settings.ts'
import type { Link } from './connection/link.ts'
import type { Publisher } from './connection/publisher.ts'
import { StandingChannel } from './connection/standing-channel.ts'
import { isAgain, type Line, type Names, priorityOf } from './names.ts'

interface KnownQueue {
  /** Highest priority first, and of each the line of jobs that come back before that of new ones. */
  lines: Line[]
  values: typeof DEFAULTS
  given: GivenSettings
}

interface Entry {
  queue: string
  line?: Line
  change?: SettingsChange
}

/** Entries that are on their way at once. */
const PREFETCH = 500
/** Milliseconds before the log of a broker that was lost is read again, at first and at most. */
const RETRY = { first: 100, most: 5000 }
const UNKNOWN: KnownQueue = { lines: [], values: DEFAULTS, given: NOTHING_GIVEN }

export class Registry {
  readonly #names: Names
  readonly #publisher: Publisher
  readonly #onChange: (queue: string) => void
  readonly #channel: StandingChannel<Channel>
  /** While the log is read anew, this is what it says so far. */
  #reading = new Map<string, KnownQueue>()
  queues: ReadonlyMap<string, KnownQueue> = this.#reading
  #entriesRead = 0
  readonly #awaited = new Map<unknown, (overridden: SettingName[]) => void>()
  #retryIn = RETRY.first

  constructor(link: Link, names: Names, publisher: Publisher, onChange: (queue: string) => void) {
    this.#names = names
    this.#publisher = publisher
    this.#onChange = onChange
    const open = async (model: Awaited<ReturnType<Link['model']>>): Promise<Channel> => {
      const channel = await model.createChannel()
      await this.#read(channel)
      return channel
    }
    this.#channel = new StandingChannel<Channel>(link, open, () => this.#readAgain())
  }

  of(queue: string): KnownQueue {
    return this.queues.get(queue) ?? UNKNOWN
  }

  /** Resolves when the log was read. @throws StoreUnavailable, Closed */
  async ready(): Promise<void> {
    await this.#channel.get()
  }

  /** Resolves when the entry was read here as well, to what `configure` answers. @throws StoreUnavailable, StoreFull, Closed */
  async append(entry: Entry): Promise<SettingName[]> {
    const messageId = newId()
    const read = new Promise<SettingName[]>((resolve) => this.#awaited.set(messageId, resolve))
    const body = Buffer.from(JSON.stringify(entry))
    const properties = { messageId, contentType: 'application/json' }
    try {
      await this.ready()
      await this.#publisher.publish([{ exchange: '', key: this.#names.log, body, properties }])
      return await this.#channel.link.inTime(read)
    } finally {
      this.#awaited.delete(messageId)
    }
  }

  /** What RabbitMQ had to send before it answers a call is here by then, so calls follow until one brings nothing. */
  async #read(channel: Channel): Promise<void> {
    this.#reading = new Map()
    await channel.assertQueue(this.#names.log, { arguments: { 'x-queue-type': 'stream' } })
    await channel.prefetch(PREFETCH)
    const take = (message: ConsumeMessage | null): void => this.#take(channel, message)
    await channel.consume(this.#names.log, take, { arguments: { 'x-stream-offset': 'first' } })
    let before = -1
    while (before < this.#entriesRead) {
      before = this.#entriesRead
      await channel.prefetch(PREFETCH)
    }
    this.queues = this.#reading
    this.#retryIn = RETRY.first
    for (const queue of this.queues.keys()) this.#onChange(queue)
  }

  #take(channel: Channel, message: ConsumeMessage | null): void {
    if (message === null) return
    channel.ack(message)
    this.#entriesRead++
    const overridden = this.#apply(JSON.parse(message.content.toString()))
    this.#awaited.get(message.properties.messageId)?.(overridden)
  }

  #apply({ queue: name, line, change }: Entry): SettingName[] {
    const queue = this.#reading.get(name) ?? { ...UNKNOWN }
    this.#reading.set(name, queue)
    if (line !== undefined && !queue.lines.includes(line)) queue.lines = [...queue.lines, line].sort(inOrder)
    let overridden: SettingName[] = []
    if (change !== undefined && !setsNothing(change)) {
      const settled = settle(queue.given, change)
      Object.assign(queue, { given: settled.given, values: { ...queue.values, ...settled.apply } })
      overridden = settled.overridden
    }
    if (this.#reading === this.queues) this.#onChange(name)
    return overridden
  }

  #readAgain(): void {
    if (this.#channel.link.isClosed) return
    setTimeout(() => void this.ready().catch(() => this.#readAgain()), this.#retryIn).unref()
    this.#retryIn = Math.min(this.#retryIn * 2, RETRY.most)
  }
}

const inOrder = (a: Line, b: Line): number => priorityOf(b) - priorityOf(a) || Number(isAgain(b)) - Number(isAgain(a))
