import type { Channel, ChannelModel } from 'amqplib'
import type { Link } from './link.ts'

/** A channel of a link. It is opened when it is needed, and again after it was lost. */
export class StandingChannel<Kind extends Channel> {
  readonly #link: Link
  readonly #open: (model: ChannelModel) => Promise<Kind>
  readonly #onLost: (why: Error | undefined) => void
  #channel: Promise<Kind> | undefined
  #model: Promise<ChannelModel> | undefined

  constructor(
    link: Link,
    open: (model: ChannelModel) => Promise<Kind>,
    onLost: (why: Error | undefined) => void = () => undefined,
  ) {
    this.#link = link
    this.#open = open
    this.#onLost = onLost
  }

  /** Does it on the channel, in the time that a call has. @throws StoreUnavailable, StoreFailed, Closed */
  run<T>(act: (channel: Kind) => Promise<T>): Promise<T> {
    return this.#link.inTime(this.#opened().then(act))
  }

  #opened(): Promise<Kind> {
    const model = this.#link.model()
    // A connection that was given up is not used again, though its channels hear of its end a moment later.
    if (this.#channel === undefined || this.#model !== model) {
      const forget = (): void => {
        if (this.#channel === opening) this.#channel = undefined
      }
      const opening = this.#watched(model, forget)
      this.#channel = opening
      this.#model = model
      opening.catch(forget)
    }
    return this.#channel
  }

  async #watched(model: Promise<ChannelModel>, forget: () => void): Promise<Kind> {
    let why: Error | undefined
    const channel = await this.#open(await model)
    channel.on('error', (error: Error) => {
      why = error
    })
    channel.on('close', () => {
      forget()
      this.#onLost(why)
    })
    return channel
  }
}
