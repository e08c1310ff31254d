/** Publishes messages with confirms: what is answered `stored` is on the disks of a majority. */
import { Writable } from 'node:stream'
import type { ChannelModel, ConfirmChannel, Options } from 'amqplib'
import { blocked } from '../errors.ts'
import type { Link } from './link.ts'
import { StandingChannel } from './standing-channel.ts'

export interface Letter {
  exchange: string
  /** The queue that it goes to, or to which it comes back from a delay. */
  key: string
  body: Buffer
  properties: Options.Publish & { messageId: string }
}

/**
 * `refused`: by a limit of the queue. `unrouted`: there is no such queue. `oversized`: the body is over RabbitMQ's max_message_size.
 * `unwritable`: AMQP cannot say its headers; nothing was sent.
 */
export type Published = 'stored' | 'refused' | 'unrouted' | 'oversized' | 'unwritable'

/** In bytes: no max_message_size is smaller. */
const SMALL = 4096

export class Publisher {
  readonly #link: Link
  readonly #channel: StandingChannel<ConfirmChannel>
  /** Of each channel, the ids of messages that RabbitMQ sent back. Their confirms follow. */
  readonly #returned = new WeakMap<ConfirmChannel, Set<unknown>>()
  /** In bytes: RabbitMQ took a body of this size. */
  #proven = SMALL
  /** In bytes: RabbitMQ's max_message_size, once it has refused a body. */
  #limit = Number.POSITIVE_INFINITY
  /** Settles when all that is under way has its answer. */
  idle: Promise<unknown> = Promise.resolve()

  constructor(link: Link) {
    this.#link = link
    this.#channel = new StandingChannel<ConfirmChannel>(
      link,
      (model) => this.#open(model),
      () => {
        this.#proven = SMALL
        this.#limit = Number.POSITIVE_INFINITY
      },
    )
  }

  async #open(model: ChannelModel): Promise<ConfirmChannel> {
    const channel = await model.createConfirmChannel()
    const returned = new Set<unknown>()
    this.#returned.set(channel, returned)
    channel.on('return', ({ properties }) => returned.add(properties.messageId))
    return channel
  }

  /**
   * All in one go, in their order, but for a body of a size that RabbitMQ has not taken before.
   * @throws StoreUnavailable, StoreFull, Closed
   */
  async publish(letters: readonly Letter[]): Promise<Published[]> {
    const { blocked: alarm, settings } = this.#link
    if (alarm !== undefined) throw blocked(settings.where, alarm)
    const publishing = this.#publish(letters)
    this.idle = Promise.allSettled([this.idle, publishing])
    return publishing
  }

  async #publish(letters: readonly Letter[]): Promise<Published[]> {
    const large = letters.filter(({ body }) => body.length > this.#proven)
    if (large.length === 0) return this.#channel.run((channel) => this.#confirmed(channel, letters))
    const alone = await this.#probe(large)
    const others = letters.filter((letter) => !alone.has(letter))
    const answers = await this.#channel.run((channel) => this.#confirmed(channel, others))
    return letters.map((letter) => alone.get(letter) ?? answers.shift() ?? 'stored')
  }

  /**
   * A body over max_message_size ends its channel, and nobody knows which others of the channel were stored. So the largest one goes alone,
   * on a channel of its own. Once it is taken, smaller ones go together.
   */
  async #probe(large: readonly Letter[]): Promise<Map<Letter, Published>> {
    const answers = new Map<Letter, Published>()
    for (const letter of large.toSorted((a, b) => b.body.length - a.body.length)) {
      const size = letter.body.length
      if (size <= this.#proven) break
      const answer = size > this.#limit ? 'oversized' : await this.#alone(letter)
      answers.set(letter, answer)
      if (answer === 'stored') this.#proven = Math.max(this.#proven, size)
    }
    return answers
  }

  async #alone(letter: Letter): Promise<Published> {
    const channel = await this.#link.inTime(this.#link.model().then((model) => this.#open(model)))
    let limit: string | undefined
    channel.on('error', ({ message }: Error) => {
      limit = /larger than (?:configured )?max size (\d+)/.exec(message)?.[1]
    })
    try {
      const [answer = 'stored'] = await this.#link.inTime(this.#confirmed(channel, [letter]))
      channel.close().catch(() => undefined)
      return answer
    } catch (error) {
      if (limit === undefined) throw error
      this.#limit = Number(limit)
      return 'oversized'
    }
  }

  #confirmed(channel: ConfirmChannel, letters: readonly Letter[]): Promise<Published[]> {
    return new Promise((resolve, reject) => {
      const answers: Published[] = []
      let left = letters.length
      if (left === 0) resolve(answers)
      writeTogether(channel)
      for (const [index, { exchange, key, body, properties }] of letters.entries()) {
        const options = { ...properties, persistent: true, mandatory: true }
        const answered = (answer: Published): void => {
          answers[index] = answer
          if (--left === 0) resolve(answers)
        }
        const confirmed = (error: unknown): void => {
          const isRefused = error instanceof Error && error.message === 'message nacked'
          if (error !== null && !isRefused) reject(error)
          const isUnrouted = this.#returned.get(channel)?.delete(properties.messageId)
          answered(isRefused ? 'refused' : isUnrouted ? 'unrouted' : 'stored')
        }
        try {
          channel.publish(exchange, key, body, options, confirmed)
        } catch (error) {
          if (!isUnwritable(error)) reject(error)
          else answered('unwritable')
        }
      }
    })
  }
}

/** amqplib writes each message to the socket by itself, in the next turn of the event loop. As one write they cost both sides less. */
function writeTogether({ connection }: ConfirmChannel): void {
  const stream: unknown = Reflect.get(connection, 'stream')
  if (!(stream instanceof Writable)) return
  stream.cork()
  setImmediate(() => setImmediate(() => stream.uncork()))
}

/** amqplib throws before it sends anything: of a table over 64 KB, or with a value that it cannot write. */
const isUnwritable = (error: unknown): boolean => error instanceof Error && error.name !== 'IllegalOperationError'
