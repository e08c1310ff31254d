/**
 * `millpond/cache`: values in the process and, under that, in Redis, where all processes share them.
 *
 * URL: `redis://user:password@host:6379/0` and whatever else the Redis store takes, or `memory:` for the process alone. The path of a call: here →
 * cache/cached.ts → cache/loader.ts (one load per key) → cache/layers.ts (what is known) → cache/memory.ts and cache/redis-layer.ts.
 */
import '../values/runtime.ts'
import { kindOf, shown } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { safeText } from '../values/safe-error.ts'
import { type Cached, cached } from './cached.ts'
import { Codec } from './codec.ts'
import { Layers } from './layers.ts'
import { type Load, Loader, type LoaderCounts } from './loader.ts'
import { checkKey, checkTag } from './names.ts'
import {
  type CacheOptions,
  type CheckedCacheOptions,
  checkCacheOptions,
  checkSetOptions,
  checkWrapOptions,
  type SetOptions,
  type WrapOptions,
  withJitter,
} from './options.ts'
import { CODINGS, type Encoding, type Leaf, type Nesting, type Plain, plain } from './plain.ts'
import { RedisLayer } from './redis-layer.ts'
import { reporter } from './report.ts'
import { Structures } from './structures.ts'
import { NO_OTHERS, Tracker } from './tracker.ts'

export type { Cached } from './cached.ts'
export type { Load, LoadContext } from './loader.ts'
export type { CacheOptions, CallOptions, LifeOptions, SetOptions, WrapOptions } from './options.ts'
export type { Encoding, Leaf, Nesting, Plain, PlainOptions } from './plain.ts'
export type { Rendered, RequestHeaders } from './rendered.ts'

export interface CacheStats extends LoaderCounts {
  /** Values that were found in Redis. */
  found: number
  /** What was found in Redis and could not be read. */
  corrupt: number
  /** What is kept in the process, and what that weighs in bytes, roughly. */
  entries: number
  bytes: number
  /** Whether Redis answers; false without one. */
  redis: boolean
  /** Whether what other processes change is heard at once; if not, it is known after `drift` at the latest. */
  tracking: boolean
}

export class Cache {
  readonly #layers: Layers
  readonly #tracker: Tracker | undefined
  readonly #counts: LoaderCounts = { hits: 0, stale: 0, loads: 0, failed: 0, joined: 0, waited: 0, cancelled: 0 }
  #closed = false

  private constructor(layers: Layers, tracker?: Tracker) {
    this.#layers = layers
    this.#tracker = tracker
  }

  /**
   * @param url `redis://…`, `rediss://…`, several hosts for a cluster, or `memory:`
   * @throws InvalidOption, UnknownScheme, StoreUnavailable
   * @example
   * await using cache = await Cache.open('redis://localhost')
   * const product = cache.wrap(loadProduct, { key: (id: number) => `product:${id}`, ttl: '1m', stale: '10m' })
   * const one = await product(42)
   */
  static async open(url: string | URL, options: CacheOptions = {}): Promise<Cache> {
    const checked = checkCacheOptions(options)
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(String(url))?.[1]?.toLowerCase()
    if (scheme === 'memory') return Cache.#inMemory(checked)
    if (scheme === 'redis' || scheme === 'rediss') return Cache.#onRedis(String(url), checked)
    throw new MillpondError(
      'UnknownScheme',
      `a cache is at redis:, rediss: or memory:; got ${scheme === undefined ? kindOf(url) : `${scheme}:`}`,
    )
  }

  static #inMemory({ memory, drift, maxValue, onError }: CheckedCacheOptions): Cache {
    const codec = new Codec(undefined, maxValue, () => undefined)
    return new Cache(new Layers(undefined, NO_OTHERS, codec, { memory, drift, onError: reporter(onError) }))
  }

  static async #onRedis(url: string, { redis: given, memory, drift, maxValue, onError }: CheckedCacheOptions) {
    const report = reporter(onError)
    const redis = await RedisLayer.open(url, given)
    const { client, names } = redis
    const codec = new Codec(new Structures(redis), maxValue, (error) => {
      const message = `the shared record structures cannot be used, so values are written without: ${safeText(error)}`
      report(new MillpondError('PayloadNotDecodable', message, { cause: error }), names.structures)
    })
    const tracker = new Tracker(client, { prefixes: [names.values, names.tags], channel: names.channel, drift })
    const layers = new Layers(redis, tracker, codec, { memory, drift, onError: report })
    await tracker.start(layers)
    return new Cache(layers, tracker)
  }

  /**
   * A function whose values are cached. Errors of the loader go to everyone who waits and are never kept; they end no value that is there.
   * @throws InvalidOption
   */
  wrap<In = void, Out = unknown>(load: Load<In, Out>, options: WrapOptions<In>): Cached<In, Out> {
    this.#assertOpen()
    const checked = checkWrapOptions(load, options)
    const loader = new Loader(load, checked, this.#layers, this.#counts)
    const keyOf = (input: In): string => {
      this.#assertOpen()
      return checked.key(input)
    }
    return cached<In, Out>(keyOf, loader, this.#layers, (key) => this.invalidate(key))
  }

  /**
   * The value, if it is there and good; nothing is loaded. `undefined` also for one that is undefined itself.
   * @throws InvalidName, StoreUnavailable, StoreFailed, Closed
   */
  async get(key: string): Promise<unknown> {
    this.#assertOpen()
    const name = checkKey(key)
    const layers = this.#layers
    const known = layers.memory.get(name)
    if (known !== undefined && layers.standing(known, performance.now()) === 'fresh') {
      this.#counts.hits++
      return layers.valueIn(known)
    }
    if (layers.redis === undefined) return undefined
    const load = layers.track(name)
    try {
      const { entry } = await layers.look(layers.redis, load, 'value')
      if (entry === undefined || load.cancelled || entry.age(performance.now()) !== 'fresh') return undefined
      return await layers.valueIn(entry)
    } finally {
      layers.untrack(load)
    }
  }

  /**
   * Stores a value. A load of the key that is under way is begun anew, in whichever process, and finds this one.
   * @throws InvalidName, InvalidOption, PayloadNotEncodable, PayloadTooLarge, StoreUnavailable, StoreFull, StoreFailed, Closed
   */
  async set(key: string, value: unknown, options: SetOptions): Promise<void> {
    this.#assertOpen()
    const name = checkKey(key)
    const { life, tags } = checkSetOptions(options)
    const lives = withJitter(life)
    const layers = this.#layers
    const { redis } = layers
    const load = layers.track(name, tags)
    try {
      const begun = layers.begin()
      load.markers = redis === undefined ? layers.knownMarkers(load) : await layers.lookUpMarkers(redis, tags)
      const encoded = redis === undefined ? undefined : await layers.encode(value, lives, load.markers)
      if (encoded !== undefined) await redis?.put(name, encoded)
      layers.invalidated(name, load)
      layers.keep(load, value, lives, { version: encoded?.version ?? '', encoded, begun, wanted: 'value' })
    } finally {
      layers.untrack(load)
    }
  }

  /**
   * Ends the value, here at once and everywhere as soon as it is heard. A load that is under way is begun anew, in whichever process: what it would have
   * brought is not stored. If it rejects, other processes may know nothing of it: repeat it.
   * @throws InvalidName, StoreUnavailable, StoreFailed, Closed
   */
  async invalidate(key: string): Promise<void> {
    await this.delete(key)
  }

  /** The same. @returns whether there was a value */
  async delete(key: string): Promise<boolean> {
    this.#assertOpen()
    const name = checkKey(key)
    const { redis, memory } = this.#layers
    const had = memory.peek(name) !== undefined
    this.#layers.forget(name)
    try {
      return redis === undefined ? had : await redis.drop(name)
    } finally {
      this.#layers.invalidated(name)
    }
  }

  /**
   * Ends every value that has the tag, at the cost of one. Loads with the tag that are under way are begun anew.
   * @throws InvalidName, StoreUnavailable, StoreFull, StoreFailed, Closed
   */
  async invalidateTag(tag: string): Promise<void> {
    this.#assertOpen()
    const name = checkTag(tag)
    this.#layers.forgetTag(name)
    try {
      await this.#layers.redis?.renewMarker(name)
    } finally {
      this.#layers.invalidatedTag(name)
    }
  }

  /**
   * Values as other programs keep them, under the key as it is: `string`, `json`, `hash` (a flat object) or `flat` (a nested one, its names joined by dots).
   * What hashes give back are texts.
   * @throws InvalidOption, NotSupported: without Redis
   */
  plain(encoding: 'string'): Plain<string>
  plain(encoding: 'json'): Plain<unknown>
  plain(encoding: 'hash'): Plain<Readonly<Record<string, Leaf>>>
  plain(encoding: 'flat'): Plain<Nesting>
  plain(encoding: Encoding) {
    this.#assertOpen()
    const { redis } = this.#layers
    if (redis === undefined) throw new MillpondError('NotSupported', 'plain encodings are of Redis: there is none')
    if (encoding === 'string') return plain(redis, CODINGS.string)
    if (encoding === 'json') return plain(redis, CODINGS.json)
    if (encoding === 'hash') return plain(redis, CODINGS.hash)
    if (encoding === 'flat') return plain(redis, CODINGS.flat)
    throw new MillpondError('InvalidOption', `plain takes string, json, hash or flat; got ${shown(encoding)}`)
  }

  stats(): CacheStats {
    const { memory, counts, redis } = this.#layers
    return {
      ...this.#counts,
      ...counts,
      entries: memory.size,
      bytes: memory.bytes,
      redis: redis?.available ?? false,
      tracking: this.#tracker?.on ?? false,
    }
  }

  /** Nothing is answered any more. Calls under way reject with `Closed` where they need Redis. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#tracker?.close()
    this.#layers.redis?.close()
    this.#layers.memory.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #assertOpen(): void {
    if (this.#closed) throw new MillpondError('Closed', 'The cache is closed; open a new one to go on.')
  }
}
