/**
 * Hears what others change: Redis' own client tracking, broadcast for the cache's prefixes, on connections of its own. In a cluster each
 * master has a pair of them.
 *
 *   off ──pairs to all masters──► on (a new epoch) ──a connection lost, or other masters──► off
 *
 * Two connections to a node, since the client's RESP3 does not hand out what is pushed: one subscribes, the other
 * tracks and redirects to it. A beat goes through both; whatever was changed before it has been heard once it is
 * answered. So what is in the process may be trusted up to `drift` after the last beat that was answered, whatever
 * happens to the connection.
 */
import type { Redis } from 'ioredis'
import { keepProcessAlive } from '../../stores/keep-process-alive.ts'
import { prepared } from '../../stores/redis-client/client.ts'
import type { Client } from '../../stores/redis-client/settings.ts'

/** How far what others change has been heard. */
export interface Changes {
  /** Whether it is heard at once. */
  readonly on: boolean
  /** Another one each time that something may have been missed. */
  readonly epoch: number
  /** Everything that changed before this has been heard, by `performance.now()`, as long as the epoch is the same. */
  readonly aliveAt: number
}

/** When a look into Redis, or a load, was begun: what it brings is at least as new as that. */
export interface Begun {
  /** By `performance.now()`. */
  seenAt: number
  epoch: number
}

/** What was read from Redis, or stored there. */
export interface Seen extends Begun {
  /** An invalidation message arrived since the value was read, so it may have changed. */
  suspect: boolean
}

/** Without Redis nobody else changes anything. */
export const NO_OTHERS: Changes = { on: true, epoch: 0, aliveAt: Number.POSITIVE_INFINITY }

export interface ChangeListener {
  /** Of a key under one of the prefixes. */
  changed(name: string): void
  /** Every key may have changed. */
  flushed(): void
  /** The lock of a key was released. */
  released(key: string): void
}

export interface TrackerSettings {
  prefixes: readonly string[]
  channel: string
  /** Milliseconds. */
  drift: number
}

const INVALIDATE = '__redis__:invalidate'
/** Milliseconds after which a pair that was lost is made again. */
const RETRY_DELAY = 200

const OPTIONS = {
  protocol: 2,
  lazyConnect: true,
  enableOfflineQueue: false,
  retryStrategy: null,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  readOnly: false,
} as const

/** To one master. */
class ConnectionPair {
  readonly #listening: Redis
  readonly #tracking: Redis
  readonly #settings: TrackerSettings
  readonly #listener: ChangeListener
  readonly #inCluster: boolean
  /** When the last beat was sent that was answered, by `performance.now()`. */
  aliveAt = Number.NEGATIVE_INFINITY
  state: 'opening' | 'ready' | 'lost' = 'opening'
  /** Another text whenever a hash slot of the cluster has gone to another node. */
  clusterEpoch: string | undefined

  constructor(node: Redis, inCluster: boolean, settings: TrackerSettings, listener: ChangeListener) {
    const connection = (name: string) => {
      const own = { ...OPTIONS, connectTimeout: settings.drift, connectionName: `millpond-cache-${name}` }
      return prepared(node.duplicate(own)).once('close', () => this.close())
    }
    this.#listening = connection('heard')
    this.#tracking = connection('tracking')
    this.#inCluster = inCluster
    this.#settings = settings
    this.#listener = listener
  }

  /** Resolves in any case; a pair that cannot be had is lost. */
  async open(): Promise<void> {
    // A load balancer may accept it for a server that is gone.
    const timer = setTimeout(() => this.close(), this.#settings.drift).unref()
    try {
      await Promise.all([this.#listening.connect(), this.#tracking.connect()])
      const id = await this.#listening.client('ID')
      this.#listening.on('messageBuffer', this.#message)
      await this.#listening.subscribe(INVALIDATE, this.#settings.channel)
      const prefixes = this.#settings.prefixes.flatMap((prefix) => ['PREFIX', prefix])
      await this.#tracking.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'BCAST', ...prefixes)
      await this.beat()
      if (this.state === 'opening') this.state = 'ready'
    } catch {
      this.close()
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves in any case; a pair that does not answer within half the drift is lost. */
  async beat(): Promise<void> {
    const sent = performance.now()
    const timer = setTimeout(() => this.close(), this.#settings.drift / 2).unref()
    try {
      const facts = this.#inCluster ? this.#tracking.cluster('INFO') : this.#tracking.ping()
      const [, info] = await Promise.all([this.#listening.ping(), facts])
      // A master that the others have given up hears of nothing.
      if (this.#inCluster && !info.includes('cluster_state:ok')) throw new Error('the cluster is not ok')
      this.clusterEpoch = /cluster_current_epoch:(\d+)/.exec(info)?.[1]
      this.aliveAt = sent
    } catch {
      this.close()
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    this.state = 'lost'
    this.#listening.off('messageBuffer', this.#message)
    this.#listening.disconnect()
    this.#tracking.disconnect()
  }

  // An invalidation brings an array of names, or null where all was flushed; the types know only of a message.
  readonly #message = (channel: Buffer, message: unknown): void => {
    if (channel.toString() !== INVALIDATE) this.#listener.released(String(message))
    else if (Array.isArray(message)) for (const name of message) this.#listener.changed(String(name))
    else this.#listener.flushed()
  }
}

export class ChangeTracker implements Changes {
  readonly #client: Client
  readonly #settings: TrackerSettings
  readonly #pairs = new Map<string, ConnectionPair>()
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #clusterEpoch: string | undefined
  on = false
  epoch = 0
  aliveAt = Number.NEGATIVE_INFINITY

  constructor(client: Client, settings: TrackerSettings) {
    this.#client = client
    this.#settings = settings
  }

  /** Resolves after the first attempt; from then on it goes by itself. */
  start(listener: ChangeListener): Promise<void> {
    return keepProcessAlive(this.#check(listener))
  }

  close(): void {
    this.#closed = true
    this.on = false
    clearTimeout(this.#timer)
    for (const pair of this.#pairs.values()) pair.close()
    this.#pairs.clear()
  }

  /** Asks every pair for a sign of life, and replaces those that are lost. */
  async #check(listener: ChangeListener): Promise<void> {
    const client = this.#client
    const nodes: readonly Redis[] = 'nodes' in client ? client.nodes('master') : [client]
    const masters = new Map(nodes.map((node) => [`${node.options.host}:${node.options.port}`, node]))
    await Promise.all([...this.#pairs.values()].map((pair) => pair.beat()))
    if (this.#closed) return
    let changed = false
    for (const [name, pair] of this.#pairs) {
      if (pair.state !== 'lost' && masters.has(name)) continue
      pair.close()
      this.#pairs.delete(name)
      changed = true
    }
    const opening: Promise<void>[] = []
    for (const [name, node] of masters) {
      if (this.#pairs.has(name)) continue
      const pair = new ConnectionPair(node, 'nodes' in client, this.#settings, listener)
      this.#pairs.set(name, pair)
      changed = true
      opening.push(pair.open())
    }
    await Promise.all(opening)
    if (this.#closed) return
    this.#noteCluster()
    const pairs = [...this.#pairs.values()]
    const on = pairs.length > 0 && pairs.every(({ state }) => state === 'ready')
    if (on && (changed || !this.on)) this.epoch++
    this.on = on
    if (on) this.aliveAt = Math.min(...pairs.map((pair) => pair.aliveAt))
    const beat = this.#settings.drift / 4
    this.#timer = setTimeout(() => void this.#check(listener), on ? beat : Math.min(RETRY_DELAY, beat)).unref()
  }

  /** Hash slots have gone elsewhere: the client finds out where, and until then nothing is sure. */
  #noteCluster(): void {
    const [pair] = this.#pairs.values()
    const seen = pair?.clusterEpoch
    if (!('refreshSlotsCache' in this.#client) || seen === undefined || seen === this.#clusterEpoch) return
    if (this.#clusterEpoch !== undefined) {
      this.epoch++
      this.#client.refreshSlotsCache()
    }
    this.#clusterEpoch = seen
  }
}
