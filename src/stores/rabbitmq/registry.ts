/**
 * Which queues there are, their lines and their settings: AMQP lists no queues, and keeps nothing beside them. A stream has it all as a log,
 * which every process reads from its beginning, and goes on reading. An entry is JSON, one of:
 *
 *   { queue, line }       the line was made
 *   { queue, change }     the settings were changed, as by `configure`
 *   { queue, removed }    of the queue, all that entries before this offset say is over
 */
import type { Channel, ConsumeMessage } from 'amqplib'
import { type GivenSettings, type SettingsChange, setsNothing } from '../../store.ts'
import { newId } from '../../values/ids.ts'
import { DEFAULTS } from '../defaults.ts'
import { NOTHING_GIVEN, settle } from '../given-settings.ts'
import { Lane, type Link } from './connection/link.ts'
import type { Publisher } from './connection/publisher.ts'
import { isAgain, type Line, type Names, priorityOf } from './names.ts'

export interface KnownQueue {
  /** Where the log says that they were made. */
  lines: Map<Line, number>
  values: typeof DEFAULTS
  given: GivenSettings
  configuredAt: number
}

interface Entry {
  queue: string
  line?: Line
  change?: SettingsChange
  removed?: number
}

/** Entries that are on their way at once. */
const PREFETCH = 500
/** Milliseconds before the log of a broker that was lost is read again. */
const RETRY = 500

const newQueue = (): KnownQueue => ({ lines: new Map(), values: DEFAULTS, given: NOTHING_GIVEN, configuredAt: -1 })

export class Registry {
  readonly #names: Names
  readonly #publisher: Publisher
  readonly #onChange: (queue: string) => void
  readonly #lane: Lane<Channel>
  /** While the log is read anew, this is what it says so far. */
  #reading = new Map<string, KnownQueue>()
  queues: ReadonlyMap<string, KnownQueue> = this.#reading
  /** Of the next entry. */
  #next = 0
  readonly #awaited = new Map<unknown, () => void>()
  #retry: NodeJS.Timeout | undefined

  constructor(link: Link, names: Names, publisher: Publisher, onChange: (queue: string) => void) {
    this.#names = names
    this.#publisher = publisher
    this.#onChange = onChange
    this.#lane = new Lane<Channel>(
      link,
      async (model) => {
        const channel = await model.createChannel()
        await this.#read(channel)
        return channel
      },
      () => this.#readAgain(),
    )
  }

  /** Offset of the next entry: what comes later is not known here yet. */
  get next(): number {
    return this.#next
  }

  /** Resolves when the log was read. @throws StoreUnavailable, Closed */
  async ready(): Promise<void> {
    await this.#lane.get()
  }

  /** Highest priority first, and jobs that come back before new ones. */
  lines(queue: string): Line[] {
    const lines = [...(this.queues.get(queue)?.lines.keys() ?? [])]
    return lines.sort((a, b) => priorityOf(b) - priorityOf(a) || Number(isAgain(b)) - Number(isAgain(a)))
  }

  /** Resolves when the entry was read here as well. @throws StoreUnavailable, StoreFull, Closed */
  async append(entry: Entry): Promise<void> {
    const messageId = newId()
    const read = new Promise<void>((resolve) => this.#awaited.set(messageId, resolve))
    const body = Buffer.from(JSON.stringify(entry))
    const properties = { messageId, contentType: 'application/json' }
    try {
      await this.ready()
      await this.#publisher.publish([{ exchange: '', key: this.#names.log, body, properties }])
      await this.#lane.link.inTime(read)
    } finally {
      this.#awaited.delete(messageId)
    }
  }

  close(): void {
    clearTimeout(this.#retry)
  }

  /** A barrier after each step: what the broker had to send before its answer is here then. */
  async #read(channel: Channel): Promise<void> {
    this.#reading = new Map()
    this.#next = 0
    await channel.assertQueue(this.#names.log, { arguments: { 'x-queue-type': 'stream' } })
    await channel.prefetch(PREFETCH)
    const take = (message: ConsumeMessage | null): void => this.#take(channel, message)
    await channel.consume(this.#names.log, take, { arguments: { 'x-stream-offset': 'first' } })
    let before = -1
    while (before < this.#next) {
      before = this.#next
      await channel.prefetch(PREFETCH)
    }
    this.queues = this.#reading
    for (const queue of this.queues.keys()) this.#onChange(queue)
  }

  #take(channel: Channel, message: ConsumeMessage | null): void {
    if (message === null) return
    channel.ack(message)
    const { headers, messageId } = message.properties
    const offset = Number(headers?.['x-stream-offset'])
    this.#next = offset + 1
    this.#apply(JSON.parse(message.content.toString()), offset)
    this.#awaited.get(messageId)?.()
  }

  #apply({ queue: name, line, change, removed }: Entry, offset: number): void {
    const queue = this.#reading.get(name) ?? newQueue()
    this.#reading.set(name, queue)
    if (line !== undefined) queue.lines.set(line, offset)
    if (change !== undefined && !setsNothing(change)) {
      const { apply, given } = settle(queue.given, change)
      Object.assign(queue, { given, values: { ...queue.values, ...apply }, configuredAt: offset })
    }
    if (removed !== undefined) {
      for (const [made, at] of queue.lines) if (at < removed) queue.lines.delete(made)
      if (queue.configuredAt < removed) Object.assign(queue, { ...newQueue(), lines: queue.lines })
      if (queue.lines.size === 0 && queue.configuredAt < 0) this.#reading.delete(name)
    }
    if (this.#reading === this.queues) this.#onChange(name)
  }

  #readAgain(): void {
    if (this.#lane.link.isClosed) return
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.ready().catch(() => this.#readAgain()), RETRY).unref()
  }
}
