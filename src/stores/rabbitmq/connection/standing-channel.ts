import type { Channel, ChannelModel } from 'amqplib'
import type { Link } from './link.ts'

/** A channel of a link. It is opened when it is needed, and again after it was lost. */
export class StandingChannel<Kind extends Channel> {
  readonly link: Link
  readonly #open: (model: ChannelModel) => Promise<Kind>
  readonly #onLost: (why: Error | undefined) => void
  #channel: Promise<Kind> | undefined

  constructor(
    link: Link,
    open: (model: ChannelModel) => Promise<Kind>,
    onLost: (why: Error | undefined) => void = () => undefined,
  ) {
    this.link = link
    this.#open = open
    this.#onLost = onLost
  }

  /** @throws StoreUnavailable, Closed */
  get(): Promise<Kind> {
    if (this.#channel === undefined) {
      const opening: Promise<Kind> = this.link.inTime(this.#opened(() => this.#forget(opening)))
      this.#channel = opening
      opening.catch(() => this.#forget(opening))
    }
    return this.#channel
  }

  /** Does it on the channel, in the time that a call has. @throws StoreUnavailable, StoreFailed, Closed */
  async run<T>(act: (channel: Kind) => Promise<T>): Promise<T> {
    const channel = await this.get()
    return this.link.inTime(act(channel))
  }

  async #opened(forget: () => void): Promise<Kind> {
    let why: Error | undefined
    const model = await this.link.model()
    const channel = await this.#open(model)
    channel.on('error', (error: Error) => {
      why = error
    })
    channel.on('close', () => {
      forget()
      this.#onLost(why)
    })
    return channel
  }

  #forget(channel: Promise<Kind>): void {
    if (this.#channel === channel) this.#channel = undefined
  }
}
