/**
 * A connection that is made when it is needed, and again after it was lost. Pushes and claims have one each: in an alarm, RabbitMQ stops
 * reading from connections that publish, and acknowledgements must get through.
 */
import type { ChannelModel } from 'amqplib'
import { MillpondError } from '../../../values/errors/errors.ts'
import { closed, toMillpondError } from '../errors.ts'
import type { Settings } from '../settings.ts'

type Amqplib = Pick<typeof import('amqplib'), 'connect'>

/** Milliseconds by which a timer may be late while the event loop is free. */
const BUSY = 5

export class Link {
  readonly settings: Settings
  readonly #amqplib: Amqplib
  readonly #name: string
  #model: Promise<ChannelModel> | undefined
  isClosed = false
  /** Why RabbitMQ reads nothing from this connection; undefined: it does. */
  blocked: string | undefined

  constructor(amqplib: Amqplib, settings: Settings, name: string) {
    this.#amqplib = amqplib
    this.settings = settings
    this.#name = name
  }

  /** @throws StoreUnavailable, Closed */
  model(): Promise<ChannelModel> {
    if (this.isClosed) return Promise.reject(closed())
    if (this.#model === undefined) {
      const opening = this.#connect()
      this.#model = opening
      opening.catch(() => this.#forget(opening))
    }
    return this.#model
  }

  /** Waits for an answer of the broker as long as a call may. One that does not come costs the connection, unless an alarm explains it. */
  async inTime<T>(answer: Promise<T>): Promise<T> {
    const { timeout, where } = this.settings
    const late = Promise.withResolvers<never>()
    let timer: NodeJS.Timeout | undefined
    const wait = (ms: number): void => {
      const due = performance.now() + ms
      timer = setTimeout(() => {
        // While the event loop was busy, nothing was sent and nothing was read: the call gets that time back.
        const busy = performance.now() - due
        if (busy > BUSY) wait(Math.min(busy, timeout))
        else late.reject(this.#silent())
      }, ms)
    }
    wait(timeout)
    try {
      return await Promise.race([answer, late.promise])
    } catch (error) {
      throw this.isClosed && !(error instanceof MillpondError) ? closed() : toMillpondError(error, where)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the connection without a word to the other side, which may not listen. All calls that are under way on it fail. */
  drop(why: Error): void {
    const dropping = this.#model
    this.#forget(dropping)
    // amqplib hears of an error of the socket, and not of its end by us.
    const destroy = (model: ChannelModel): unknown => call(get(model.connection, 'stream'), 'destroy', why)
    dropping?.then(destroy, () => undefined)
  }

  #silent(): Error {
    const why = this.blocked === undefined ? '' : `, since it has an alarm: ${this.blocked}`
    const error = new Error(`no answer within ${this.settings.timeout} ms${why}`)
    if (this.blocked === undefined) this.drop(error)
    return error
  }

  async close(): Promise<void> {
    this.isClosed = true
    try {
      const model = await this.#model
      if (model !== undefined) await this.inTime(model.close())
    } catch (error) {
      this.drop(error instanceof Error ? error : closed())
    }
  }

  async #connect(): Promise<ChannelModel> {
    const { nodes, credentials, heartbeat, timeout, where } = this.settings
    const clientProperties = { connection_name: this.#name }
    let failure: unknown
    for (const node of nodes) {
      try {
        const options = { noDelay: true, timeout, clientProperties }
        return this.#watched(await this.#amqplib.connect({ ...credentials, ...node, heartbeat }, options))
      } catch (error) {
        failure = error
      }
    }
    throw toMillpondError(failure, where)
  }

  #watched(model: ChannelModel): ChannelModel {
    const opened = this.#model
    // Errors reject the calls that they concern. The close that follows says that the connection is gone.
    model.on('error', () => undefined)
    model.on('close', () => this.#forget(opened))
    const block = (reason?: string): void => {
      if (this.#model === opened) this.blocked = reason
    }
    model.on('blocked', block)
    model.on('unblocked', () => block())
    // An open store alone keeps no process alive. Calls do, by the timers of their deadlines.
    const heart = get(model.connection, 'heartbeater')
    for (const each of [get(model.connection, 'stream'), get(heart, 'sendTimer'), get(heart, 'recvTimer')])
      call(each, 'unref')
    return model
  }

  #forget(model: Promise<ChannelModel> | undefined): void {
    if (this.#model !== model) return
    this.#model = undefined
    // A push is what connects anew, and an alarm would refuse it.
    this.blocked = undefined
  }
}

function call(what: unknown, name: string, ...args: unknown[]): void {
  const method = get(what, name)
  if (typeof method === 'function') method.apply(what, args)
}

const get = (what: unknown, name: string): unknown =>
  typeof what === 'object' && what !== null ? Reflect.get(what, name) : undefined
