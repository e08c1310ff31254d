/** Publishes messages with confirms: what is answered `stored` is on the disks of a majority. */
import { Writable } from 'node:stream'
import type { ConfirmChannel, Options } from 'amqplib'
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

/** `refused`: by a limit of the queue. `unrouted`: there is no such queue. `unwritable`: AMQP cannot say its headers; nothing was sent. */
export type Published = 'stored' | 'refused' | 'unrouted' | 'unwritable'

export class Publisher {
  readonly #link: Link
  readonly #channel: StandingChannel<ConfirmChannel>
  /** Ids of messages that RabbitMQ sent back. Their confirms follow. */
  readonly #returned = new Set<string | undefined>()
  /** Settles when all that is under way has its answer. */
  idle: Promise<unknown> = Promise.resolve()

  constructor(link: Link) {
    this.#link = link
    this.#channel = new StandingChannel<ConfirmChannel>(link, async (model) => {
      const channel = await model.createConfirmChannel()
      channel.on('return', ({ properties }) => this.#returned.add(properties.messageId))
      return channel
    })
  }

  /** All in one go, in their order. @throws StoreUnavailable, StoreFull, Closed */
  async publish(letters: readonly Letter[]): Promise<Published[]> {
    const { blocked: alarm, settings } = this.#link
    if (alarm !== undefined) throw blocked(settings.where, alarm)
    const publishing = this.#channel.run((channel) => this.#confirmed(channel, letters))
    this.idle = Promise.allSettled([this.idle, publishing])
    return publishing
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
          const isUnrouted = this.#returned.size > 0 && this.#returned.delete(properties.messageId)
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
