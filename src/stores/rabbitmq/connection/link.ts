/**
 * A connection that is made when it is needed, and again after it was lost. Its channels likewise. Pushes and claims have a connection
 * each: in an alarm, RabbitMQ stops reading from connections that publish, and acknowledgements must get through.
 */
import type { Channel, ChannelModel } from 'amqplib'
import { MillpondError } from '../../../values/errors.ts'
import { closed, toMillpondError } from '../errors.ts'
import type { Settings } from '../settings.ts'

type Amqplib = Pick<typeof import('amqplib'), 'connect'>

export class Link {
  readonly settings: Settings
  readonly #amqplib: Amqplib
  readonly #name: string
  #model: Promise<ChannelModel> | undefined
  #isClosed = false
  /** Why RabbitMQ reads nothing from this connection; undefined: it does. */
  blocked: string | undefined

  constructor(amqplib: Amqplib, settings: Settings, name: string) {
    this.#amqplib = amqplib
    this.settings = settings
    this.#name = name
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** @throws StoreUnavailable, Closed */
  model(): Promise<ChannelModel> {
    if (this.#isClosed) return Promise.reject(closed())
    if (this.#model === undefined) {
      const opening = this.#connect()
      this.#model = opening
      opening.catch(() => this.#forget(opening))
    }
    return this.#model
  }

  /** What is asked of the broker, within the time that a call has. An answer that does not come takes the connection along. */
  async inTime<T>(what: Promise<T>): Promise<T> {
    const { timeout, where } = this.settings
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.drop()
        reject(new Error(`closed: no answer within ${timeout} ms`))
      }, timeout)
    })
    try {
      return await Promise.race([what, late])
    } catch (error) {
      throw this.#isClosed && !(error instanceof MillpondError) ? closed() : toMillpondError(error, where)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Gives the connection up without a word to the other side, which may not listen. */
  drop(): void {
    const dropping = this.#model
    if (dropping === undefined) return
    this.#forget(dropping)
    dropping.then(
      (model) => call(Reflect.get(model.connection, 'stream'), 'destroy'),
      () => undefined,
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const closing = this.#model
    if (closing === undefined) return
    try {
      const model = await closing
      await this.inTime(model.close())
    } catch {
      this.drop()
    }
  }

  async #connect(): Promise<ChannelModel> {
    const { nodes, protocol, username, password, vhost, heartbeat, timeout, where } = this.settings
    let failure: unknown
    for (const { hostname, port } of nodes) {
      const address = { protocol, hostname, port, username, password, vhost, heartbeat }
      const named = { connection_name: this.#name }
      try {
        const options = { noDelay: true, timeout, servername: hostname, clientProperties: named }
        return this.#watched(await this.#amqplib.connect(address, options))
      } catch (error) {
        failure = error
      }
    }
    throw toMillpondError(new Error(`closed: ${failure instanceof Error ? failure.message : failure}`), where)
  }

  #watched(model: ChannelModel): ChannelModel {
    const opened = this.#model
    this.blocked = undefined
    // Errors reject the calls that they concern; the close that follows says that the connection is gone.
    model.on('error', () => undefined)
    model.on('close', () => this.#forget(opened))
    model.on('blocked', (reason) => {
      this.blocked = reason
    })
    model.on('unblocked', () => {
      this.blocked = undefined
    })
    // An open store alone keeps no process alive; calls do, by the timers of their deadlines.
    call(Reflect.get(model.connection, 'stream'), 'unref')
    const heart: unknown = Reflect.get(model.connection, 'heartbeater')
    for (const timer of ['sendTimer', 'recvTimer']) call(get(heart, timer), 'unref')
    return model
  }

  #forget(model: Promise<ChannelModel> | undefined): void {
    if (this.#model === model) this.#model = undefined
  }
}

/** A channel of a link. */
export class Lane<Kind extends Channel> {
  readonly link: Link
  readonly #open: (model: ChannelModel) => Promise<Kind>
  readonly #onLost: (channel: Kind, why: Error | undefined) => void
  #channel: Promise<Kind> | undefined

  constructor(
    link: Link,
    open: (model: ChannelModel) => Promise<Kind>,
    onLost: (channel: Kind, why: Error | undefined) => void = () => undefined,
  ) {
    this.link = link
    this.#open = open
    this.#onLost = onLost
  }

  /** @throws StoreUnavailable, Closed */
  get(): Promise<Kind> {
    if (this.#channel === undefined) {
      const opening = this.link.inTime(this.#opened())
      this.#channel = opening
      opening.catch(() => this.#forget(opening))
    }
    return this.#channel
  }

  /** Does it on the channel, in the time that a call has. */
  async run<T>(act: (channel: Kind) => Promise<T>): Promise<T> {
    const channel = await this.get()
    return this.link.inTime(act(channel))
  }

  async #opened(): Promise<Kind> {
    const channel = await this.#open(await this.link.model())
    const opened = this.#channel
    let why: Error | undefined
    channel.on('error', (error: Error) => {
      why = error
    })
    channel.on('close', () => {
      this.#forget(opened)
      this.#onLost(channel, why)
    })
    return channel
  }

  #forget(channel: Promise<Kind> | undefined): void {
    if (this.#channel === channel) this.#channel = undefined
  }
}

function call(what: unknown, name: string): void {
  const method = get(what, name)
  if (typeof method === 'function') method.call(what)
}

function get(what: unknown, name: string): unknown {
  return typeof what === 'object' && what !== null ? Reflect.get(what, name) : undefined
}
