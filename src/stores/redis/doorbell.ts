/**
 * Bells between processes. Scripts publish them on the store's channel, and only when someone may be waiting for them; a connection of our own
 * listens while anybody here does. Bells of this process are rung without the server.
 *
 * A channel and not a blocking read: a blocking read must name keys of one slot, so that in a cluster a pond would need a connection for
 * each queue that it listens to.
 */
import type { Redis } from 'ioredis'
import type { Bell } from '../../store.ts'
import { Bells } from '../bells.ts'
import { held } from '../held.ts'
import type { Client } from './link.ts'
import { Reader } from './reader.ts'
import { unheld, unholdSubscriber } from './unheld.ts'

export class Doorbell {
  readonly local = new Bells()
  readonly #client: Client
  readonly #channel: string
  readonly #origin: string
  readonly #listeners = new Set<(bell: Bell) => void>()
  /** A connection that subscribes can do nothing else; a cluster has one for that itself. */
  #subscriber: Redis | undefined
  #subscribed = false

  constructor(client: Client, channel: string, origin: string) {
    this.#client = client
    this.#channel = channel
    this.#origin = origin
  }

  listen(listener: (bell: Bell) => void): () => void {
    const own = (bell: Bell): void => listener(bell)
    const stop = this.local.listen(own)
    this.#listeners.add(own)
    this.#subscribe()
    return () => {
      stop()
      this.#listeners.delete(own)
      this.#unhold()
    }
  }

  /** Bells hold no process. */
  readonly #unhold = (): void => {
    if (this.#client.isCluster) unholdSubscriber(this.#client)
  }

  /** The connection stays for whoever listens next: people come and go, and it costs nothing while no bell rings. */
  #subscribe(): void {
    if (this.#subscribed) return
    this.#subscribed = true
    const listening = this.#listening()
    listening.on('messageBuffer', this.#heard)
    // What is missed until it is back is found by looking once a second.
    const quiet = (): void => undefined
    if (listening !== this.#client) listening.on('error', quiet)
    listening.subscribe(this.#channel).then(this.#unhold, () => {
      this.#subscribed = false
      listening.off('messageBuffer', this.#heard)
      if (this.#listeners.size > 0) setTimeout(() => this.#subscribe(), 100).unref()
    })
  }

  #listening(): Client {
    const client = this.#client
    if ('nodes' in client) return client
    this.#subscriber ??= unheld(
      client.duplicate({
        enableOfflineQueue: true,
        maxRetriesPerRequest: null,
        autoResubscribe: true,
        connectionName: 'millpond-bells',
      }),
    )
    return this.#subscriber
  }

  readonly #heard = (_channel: Buffer, message: Buffer): void => {
    if (this.#listeners.size === 0 || !_channel.equals(Buffer.from(this.#channel))) return
    const reader = new Reader(message)
    reader.list()
    const origin = reader.text()
    const queue = reader.text()
    const kind = reader.text()
    if (origin === this.#origin) return
    const ids = reader.nil() ? undefined : reader.ids()
    const bell = bellOf(kind, queue, ids)
    if (bell !== undefined) for (const listener of [...this.#listeners]) listener(bell)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    this.local.silence()
    this.#client.off('messageBuffer', this.#heard)
    const subscriber = this.#subscriber
    if (subscriber !== undefined) subscriber.disconnect()
    else if (this.#subscribed) await held(this.#client.unsubscribe(this.#channel)).catch(() => undefined)
  }
}

/** undefined: of a kind that a newer version may know. */
function bellOf(kind: string, queue: string, ids: string[] | undefined): Bell | undefined {
  switch (kind) {
    case 'work':
    case 'room':
      return { kind, queue }
    case 'finished':
    case 'cancelled':
      return ids === undefined ? { kind, queue } : { kind, queue, ids }
    default:
      return undefined
  }
}
