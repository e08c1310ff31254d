/**
 * `millpond/cache`: values in the process and, under that, in Redis, where all processes share them.
 *
 * URL: `redis://user:password@host:6379/0` and whatever else the Redis store takes, or `memory:` for the process alone. The path of a call: here →
 * cache/cached.ts → cache/loader.ts (one flight per key) → cache/layers.ts (what is known) → cache/memory.ts and cache/redis.ts.
 */
import './runtime.ts'
import { type Cached, cached } from './cache/cached.ts'
import { Codec } from './cache/codec.ts'
import { Flying } from './cache/flying.ts'
import { age, Layers } from './cache/layers.ts'
import { type Ground, type Load, Loader, type LoaderCounts } from './cache/loader.ts'
import { checkKey, checkTag } from './cache/names.ts'
import {
  type CacheOptions,
  type CheckedCacheOptions,
  checkCacheOptions,
  checkSetOptions,
  checkWrapOptions,
  drawn,
  type SetOptions,
  type WrapOptions,
} from './cache/options.ts'
import {
  type Encoding,
  type Leaf,
  type Nesting,
  type Plain,
  plainFlat,
  plainHash,
  plainJson,
  plainString,
} from './cache/plain.ts'
import { RedisSide } from './cache/redis.ts'
import { Structures } from './cache/structures.ts'
import { Tracker } from './cache/tracker.ts'
import { trouble } from './cache/trouble.ts'
import { ALONE } from './cache/watch.ts'
import { kindOf, shown } from './duration.ts'
import { MillpondError } from './errors.ts'
import { safeText } from './safe-error.ts'

export type { Cached } from './cache/cached.ts'
export type { Load, LoadContext } from './cache/loader.ts'
export type { CacheOptions, CallOptions, LifeOptions, SetOptions, WrapOptions } from './cache/options.ts'
export type { Encoding, Leaf, Nesting, Plain, PlainOptions } from './cache/plain.ts'
export type { Rendered, RequestHeaders } from './cache/rendered.ts'

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

const NEVER = new AbortController().signal

export class Cache {
  readonly #layers: Layers
  readonly #ground: Ground
  readonly #tracker: Tracker | undefined
  #closed = false

  private constructor(layers: Layers, ground: Ground, tracker: Tracker | undefined) {
    this.#layers = layers
    this.#ground = ground
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
    const onTrouble = trouble(onError)
    const codec = new Codec(undefined, maxValue, () => undefined)
    const layers = new Layers(undefined, ALONE, codec, { memory, drift, onTrouble })
    return new Cache(layers, { layers, counts: noCounts(), hearing: () => true, onTrouble }, undefined)
  }

  static async #onRedis(url: string, { redis: given, memory, drift, maxValue, onError }: CheckedCacheOptions) {
    const onTrouble = trouble(onError)
    const redis = await RedisSide.open(url, given)
    const { names } = redis
    const codec = new Codec(new Structures(redis), maxValue, (error) => {
      const message = `the shared record structures cannot be used, so values are written without: ${safeText(error)}`
      onTrouble(new MillpondError('PayloadNotDecodable', message, { cause: error }), names.structures)
    })
    const heard = {
      changed: (name: string) => {
        const what = names.parse(name)
        if (what?.key !== undefined) layers.suspect(what.key)
        else if (what?.tag !== undefined) layers.suspectTag(what.tag)
      },
      flushed: () => layers.suspectAll(),
      landed: (key: string) => {
        for (const flying of layers.sky.of(key)) flying.touch()
      },
    }
    const prefixes = [names.values, names.tags]
    const tracker = new Tracker(redis.client, { prefixes, channel: names.channel, drift }, heard)
    const layers = new Layers(redis, tracker, codec, { memory, drift, onTrouble })
    await tracker.start()
    return new Cache(layers, { layers, counts: noCounts(), hearing: () => tracker.on, onTrouble }, tracker)
  }

  /**
   * A function whose values are cached. Errors of the loader go to everyone who waits and are never kept; they end no value that is there.
   * @throws InvalidOption
   */
  wrap<In = void, Out = unknown>(load: Load<In, Out>, options: WrapOptions<In>): Cached<In, Out> {
    this.#assertOpen()
    const checked = checkWrapOptions(load, options)
    const loader = new Loader(load, checked, this.#ground)
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
    const { memory, redis, sky } = this.#layers
    const known = memory.get(name)
    if (known !== undefined && this.#layers.standing(known, performance.now()) === 'fresh') {
      this.#ground.counts.hits++
      return this.#layers.valueIn(known)
    }
    if (redis === undefined) return undefined
    const flying = new Flying(name, [], NEVER, () => undefined)
    sky.add(flying)
    try {
      const { entry } = await this.#layers.look(redis, flying, 'value')
      if (entry === undefined || flying.cancelled || age(entry, performance.now()) !== 'fresh') return undefined
      return await this.#layers.valueIn(entry)
    } finally {
      sky.remove(flying)
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
    const lives = drawn(life)
    const layers = this.#layers
    const { redis, sky } = layers
    const flying = new Flying(name, tags, NEVER, () => undefined)
    const held = layers.hold(tags)
    sky.add(flying)
    try {
      const begun = layers.begin()
      flying.markers =
        redis === undefined ? layers.assumed(held) : tags.length > 0 ? await layers.learn(redis, tags) : []
      const stored = redis === undefined ? undefined : await layers.encode(value, lives, flying.markers)
      if (redis !== undefined && stored !== undefined) await redis.put(name, stored)
      sky.remove(flying)
      layers.invalidated(name)
      layers.keep(flying, value, lives, { version: stored?.version ?? '', encoded: stored, begun, wanted: 'value' })
    } finally {
      sky.remove(flying)
      layers.letGo(held)
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
      await this.#layers.redis?.remark(name)
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
    switch (encoding) {
      case 'string':
        return plainString(redis)
      case 'json':
        return plainJson(redis)
      case 'hash':
        return plainHash(redis)
      case 'flat':
        return plainFlat(redis)
      default:
        throw new MillpondError('InvalidOption', `plain takes string, json, hash or flat; got ${shown(encoding)}`)
    }
  }

  stats(): CacheStats {
    const { memory, counts, redis } = this.#layers
    return {
      ...this.#ground.counts,
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

const noCounts = (): LoaderCounts => ({
  hits: 0,
  stale: 0,
  loads: 0,
  failed: 0,
  joined: 0,
  waited: 0,
  cancelled: 0,
})
