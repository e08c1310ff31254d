/**
 * Bells between processes. Scripts publish them on the store's channel, and only when someone may be waiting for them;
 * a connection of our own listens while anybody here does. Bells of this process are rung without the server.
 *
 * A channel and not a blocking read: a blocking read keeps its connection to itself, and names its keys once:
 * a queue that a worker takes up meanwhile would need another one.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Bell } from '../../store.ts'
import { Bells, KINDS } from '../bells.ts'
import { prepared, reconnectIfEnded } from '../redis-client/client.ts'
import type { Client } from '../redis-client/settings.ts'
import { unrefSubscriber } from '../redis-client/unref.ts'
import { idTexts, listBefore } from './wire.ts'

export class Notifier {
  /** Rung in this process, at once. */
  readonly local = new Bells()
  readonly channel: string
  /** Names this store among all processes. */
  readonly origin = randomUUID()
  readonly #client: Client
  readonly #timeout: number
  /** A connection that subscribes can do nothing else; a cluster has one for that itself. */
  #subscriber: Redis | undefined
  #subscribed = false
  #closed = false
  #watch: NodeJS.Timeout | undefined

  /** @param timeout milliseconds in which the connection must show that it lives */
  constructor(client: Client, channel: string, timeout: number) {
    this.#client = client
    this.channel = channel
    this.#timeout = timeout
  }

  listen(listener: (bell: Bell) => void): () => void {
    this.#subscribe()
    return this.local.listen(listener)
  }

  /** The connection stays for the next listener: it costs nothing while no bell rings. */
  #subscribe(): void {
    if (this.#subscribed || this.#closed) return
    this.#subscribed = true
    const client = this.#client
    if ('nodes' in client) {
      client.on('messageBuffer', this.#heard)
      // It subscribes again by itself, and does not say so: what it misses is found by looks and extensions.
      this.#subscribeOn(client)
      return
    }
    const subscriber = prepared(
      client.duplicate({
        enableOfflineQueue: true,
        maxRetriesPerRequest: null,
        // An answer that is lost with a connection never comes: each connection subscribes anew.
        autoResubscribe: false,
        // `#check` sees that it is silent; a replica passes bells on as well.
        failoverDetector: false,
        connectionName: 'millpond-bells',
      }),
    )
    this.#subscriber = subscriber
    subscriber.on('messageBuffer', this.#heard)
    subscriber.on('ready', () => this.#subscribeOn(subscriber))
    this.#watch = setInterval(() => this.#check(), this.#timeout).unref()
  }

  #subscribeOn(client: Client): void {
    client.subscribe(this.channel).then(this.#up, () => {
      if (!this.#closed) setTimeout(() => this.#subscribeOn(client), 100).unref()
    })
  }

  /**
   * What was rung until now went unheard: a job that is held may have been cancelled, which no look would find before its lease is renewed.
   */
  readonly #up = (): void => {
    this.#unref()
    this.local.ringAll()
  }

  /** Bells keep no process alive. */
  readonly #unref = (): void => {
    if (this.#client.isCluster) unrefSubscriber(this.#client)
  }

  /** A connection that has fallen silent is as still as one on which no bell rings. */
  #check(): void {
    const subscriber = this.#subscriber
    if (subscriber === undefined) return
    reconnectIfEnded(subscriber)
    const timer = setTimeout(() => subscriber.disconnect(true), this.#timeout).unref()
    const heard = (): void => clearTimeout(timer)
    subscriber.ping().then(heard, heard)
  }

  readonly #heard = (channel: Buffer, message: Buffer): void => {
    this.#unref()
    if (channel.toString() !== this.channel) return
    const { origin, queue, kind, ids } = bellIn(message)
    if (origin === this.origin || typeof queue !== 'string' || kind === undefined) return
    if (ids.length === 0) this.local.ring(kind, queue)
    for (const id of ids) this.local.ring(kind, queue, id)
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#watch)
    this.local.silence()
    this.#client.off('messageBuffer', this.#heard)
    this.#subscriber?.disconnect()
  }
}

/** A message on the channel. `kind` is undefined if it is one of a newer version. */
export function bellIn(message: Buffer) {
  const { list, end } = listBefore(message)
  const [origin, queue, kindText] = list
  return { origin, queue, kind: KINDS.find((known) => known === kindText), ids: idTexts(message, end) }
}
