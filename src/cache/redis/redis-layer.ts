/** The cache's commands to Redis. Every call is answered within the time limit, and fails at once while Redis is known to be gone. */

import { randomBytes } from 'node:crypto'
import { ChosenDatabase } from '../../stores/redis-client/chosen-database.ts'
import { connected, newClient, ownLike, replaceConnection } from '../../stores/redis-client/client.ts'
import { closed, isNoScript, isPassing, isReply, toMillpondError } from '../../stores/redis-client/errors.ts'
import { bytesOf, extraTime } from '../../stores/redis-client/extra-time.ts'
import { scriptsIn } from '../../stores/redis-client/scripts.ts'
import { type Client, type ClientSettings, settingsOf } from '../../stores/redis-client/settings.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { isError } from '../../values/runtime/realms.ts'
import { CHUNK_BYTES, fetchChunks, removeChunks, storeChunks } from './chunks.ts'
import { CacheKeys } from './keys.ts'
import { LUA_FILES } from './lua-files.ts'
import { headOf, lifeOf, parseStored, START_BYTES, type StoredValue, VERSION_BYTES, versionOf } from './stored-value.ts'

/** Milliseconds. A marker outlives every value that was stored under it: those live for 24 days at most. */
const MARKER_LIFE = 50 * 24 * 3_600_000
/** The other options of a cache are no options of Redis. */
const ACCEPTED = {
  by: 'the URL of a cache',
  prefix: 'cache',
  numbers: { timeout: [2000, 100, 600_000] },
  others: [],
} as const
/** Milliseconds for which calls fail at once after one that was not answered in time. */
const PAUSE = 1000
/** Least milliseconds between two questions to a cluster about which node has which hash slots. */
const SLOTS_REFRESH_INTERVAL = 200
/** A chunked value may be replaced while its chunks are fetched. */
const READ_ATTEMPTS = 3

export interface Found {
  stored: StoredValue
  /** Milliseconds since it was written. */
  age: number
}

/** What is there is no value of ours, or damaged. */
export interface Corrupt {
  reason: string
}

/** A number: for how many ms another has the lock. */
export type Acquired = 'ours' | 'changed' | number

type Argument = string | number | Buffer

export const scriptOf = scriptsIn(LUA_FILES)

export class RedisLayer {
  readonly client: Client
  readonly keys: CacheKeys
  readonly #settings: ClientSettings
  readonly #database: ChosenDatabase
  /** By `performance.now()`; calls before it are refused. */
  #pausedUntil = 0
  #replacedAt = Number.NEGATIVE_INFINITY
  #slotsAskedAt = Number.NEGATIVE_INFINITY
  #closed = false

  private constructor(client: Client, settings: ClientSettings) {
    this.client = client
    this.#database = new ChosenDatabase(client, settings.where)
    this.keys = new CacheKeys(settings.prefix)
    this.#settings = settings
  }

  /** @throws InvalidOption, StoreUnavailable */
  static async open(url: string, options: Readonly<Record<string, unknown>>): Promise<RedisLayer> {
    const settings = settingsOf(url, options, ACCEPTED)
    const client =
      settings.client === undefined ? await newClient(settings) : ownLike(settings.client, settings.timeout)
    const layer = new RedisLayer(client, settings)
    try {
      await connected(client, settings)
      await layer.#database.settled(settings.timeout)
      return layer
    } catch (error) {
      const coded = layer.#coded(error)
      layer.close()
      throw coded
    }
  }

  /** Whether the last that was heard of it is good. */
  get available(): boolean {
    return !this.#closed && this.client.status === 'ready' && performance.now() >= this.#pausedUntil
  }

  /** @throws StoreUnavailable */
  async read(key: string): Promise<Found | Corrupt | undefined> {
    const name = this.keys.value(key)
    for (let attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
      const replies = await this.call((client) => client.pipeline().getBuffer(name).pttl(name).exec())
      const [error, bytes] = replies?.[0] ?? [new Error('Connection is closed.'), null]
      if (isWrongType(error)) return { reason: 'it is no string' }
      if (error !== null) throw this.#coded(error)
      if (!Buffer.isBuffer(bytes)) return undefined
      const left = Number(replies?.[1]?.[1])
      try {
        const stored = parseStored(bytes)
        const life = lifeOf(stored)
        if (!(left >= 0 && left <= life)) return { reason: `it has ${left} ms of ${life} left` }
        const body = stored.chunks === 0 ? stored.body : await fetchChunks(this, this.keys.chunks(key), stored)
        if (body !== undefined) return { stored: { ...stored, body }, age: life - left }
      } catch (error) {
        if (isError(error) && /^(Range|Type)Error$/.test(error.name)) return { reason: error.message }
        throw error
      }
    }
    return { reason: 'its chunks are not there' }
  }

  /** The version of what is there, without fetching all of it; undefined where nothing of ours is. @throws StoreUnavailable */
  async check(key: string): Promise<string | undefined> {
    const name = this.keys.value(key)
    try {
      const start = await this.call((client) => client.getrangeBuffer(name, 0, START_BYTES - 1))
      return start.length < START_BYTES ? undefined : versionOf(start)
    } catch (error) {
      if (isWrongType(error)) return undefined
      throw error
    }
  }

  /** @param seen the version that was read; null: something that is not ours */
  async acquire(key: string, token: string, lease: number, seen: string | undefined | null): Promise<Acquired> {
    const known = seen === null ? '*' : Buffer.from(seen ?? '', 'latin1')
    const left = await this.#run('acquire', ...this.#valueAndLock(key), token, lease, known)
    return left === 0 ? 'ours' : Number(left) < 0 ? 'changed' : Number(left)
  }

  /** @returns whether the lock is still the token's */
  async renew(key: string, token: string, lease: number): Promise<boolean> {
    return (await this.#run('renew', this.keys.lock(key), token, lease)) === 1
  }

  async release(key: string, token: string): Promise<void> {
    await this.#run('release', this.keys.lock(key), token, this.keys.channel, key)
  }

  /** @returns whether it is stored; not if the lock is no longer the token's */
  async commit(key: string, token: string, stored: StoredValue): Promise<boolean> {
    const prefix = this.keys.chunks(key)
    const { life, value, chunks } = await this.#prepare(prefix, stored)
    const done = (await this.#run('commit', ...this.#valueAndLock(key), token, value, life, prefix)) === 1
    // If they stay they expire. That the lock was lost has to be answered in any case.
    if (!done && chunks > 0) await removeChunks(this, prefix, stored, chunks).catch(() => undefined)
    return done
  }

  async put(key: string, stored: StoredValue): Promise<void> {
    const prefix = this.keys.chunks(key)
    const { life, value } = await this.#prepare(prefix, stored)
    await this.#run('put', ...this.#valueAndLock(key), value, life, prefix, this.keys.channel, key)
  }

  /**
   * Removes the value and the lock.
   * @param token given: only if the lock is the token's
   * @returns whether there was a value; undefined: the lock is not the token's
   */
  async drop(key: string, token = ''): Promise<boolean | undefined> {
    const { channel } = this.keys
    const done = await this.#run('drop', ...this.#valueAndLock(key), this.keys.chunks(key), channel, key, token)
    return Number(done) < 0 ? undefined : done === 1
  }

  /** The tags' markers, made where there are none. */
  markers(tags: readonly string[]): Promise<string[]> {
    return Promise.all(
      tags.map(async (tag) => {
        const marker = await this.#run('marker', this.keys.tags + tag, randomBytes(VERSION_BYTES), MARKER_LIFE)
        return Buffer.isBuffer(marker) ? marker.toString('latin1') : ''
      }),
    )
  }

  /** Gives the tag another marker: every value that was stored under the old one is invalid. */
  async renewMarker(tag: string): Promise<void> {
    const marker = randomBytes(VERSION_BYTES)
    await this.call((client) => client.set(this.keys.tags + tag, marker, 'PX', MARKER_LIFE))
  }

  /** The list of record structures, made with this id if there is none. */
  async load(freshId: string): Promise<readonly string[]> {
    let list: unknown
    try {
      list = await this.#run('table', this.keys.structures, freshId)
    } catch (error) {
      if (isWrongType(error)) throw new TypeError('the list of structures is of another type')
      throw error
    }
    if (!Array.isArray(list)) throw new TypeError('the list of structures is none')
    return list.map(String)
  }

  /** Appends record structures, if the list has this id and this many of them. @returns whether it has done so */
  async append(id: string, length: number, structures: readonly string[]): Promise<boolean> {
    return (await this.#run('append', this.keys.structures, id, length, ...structures)) === 1
  }

  close(): void {
    this.#closed = true
    this.client.disconnect()
  }

  #valueAndLock(key: string): [string, string] {
    return [this.keys.value(key), this.keys.lock(key)]
  }

  /** What is to be stored at the key itself, once the chunks are where they belong. */
  async #prepare(prefix: string, stored: StoredValue): Promise<{ life: number; value: Buffer; chunks: number }> {
    const life = lifeOf(stored)
    if (stored.body.length <= CHUNK_BYTES) {
      return { life, value: Buffer.concat([headOf(stored), stored.body]), chunks: 0 }
    }
    const chunks = await storeChunks(this, prefix, stored, life)
    return { life, value: headOf({ ...stored, chunks }), chunks }
  }

  async #run(name: string, ...values: Argument[]): Promise<unknown> {
    const { sha, text, keys } = scriptOf(name)
    const bytes = bytesOf(values)
    try {
      return await this.call((client) => client.callBuffer('evalsha', sha, keys.length, ...values), bytes)
    } catch (error) {
      if (!isNoScript(error instanceof MillpondError ? error.cause : error)) throw error
      return this.call((client) => client.callBuffer('eval', text, keys.length, ...values), bytes)
    }
  }

  /** @param send sends commands @param bytes that they send, or ask for @throws StoreUnavailable, StoreFull, StoreFailed, Closed */
  async call<T>(send: (client: Client) => Promise<T>, bytes = 0): Promise<T> {
    const timeout = this.#settings.timeout + extraTime(bytes)
    const now = performance.now()
    if (this.#closed) throw closed()
    if (now < this.#pausedUntil) throw this.#coded(new Error('Connection is closed. (it did not answer a moment ago)'))
    // Only one call at a time finds out whether it is back; calls that come meanwhile do not wait for that.
    if (this.#pausedUntil > 0) this.#pausedUntil = now + timeout
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      // Of a cluster the other nodes answer.
      if (!('nodes' in this.client)) this.#pausedUntil = performance.now() + PAUSE
      this.#replaceConnection()
      late.reject(new Error(`Command timed out after ${timeout} ms`))
    }, timeout)
    try {
      this.#database.check()
      const answer = await Promise.race([send(this.client), late.promise])
      this.#pausedUntil = 0
      return answer
    } catch (error) {
      // A refusal is an answer, too: the server is back.
      if (isReply(error)) this.#pausedUntil = 0
      if (isPassing(error)) this.#refreshSlots()
      throw this.#coded(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** A connection on which the server has fallen silent stays so: at most once in the time that a new one has for its first answer. */
  #replaceConnection(): void {
    const now = performance.now()
    if (this.#closed || now < this.#replacedAt + this.#settings.timeout / 2) return
    this.#replacedAt = now
    replaceConnection(this.client)
  }

  /** A node that does not answer may have lost its hash slots to another, which nobody tells the client. */
  #refreshSlots(): void {
    const now = performance.now()
    if (!('refreshSlotsCache' in this.client) || this.#closed) return
    if (now < this.#slotsAskedAt + SLOTS_REFRESH_INTERVAL) return
    this.#slotsAskedAt = now
    this.client.refreshSlotsCache()
  }

  #coded(error: unknown): MillpondError {
    if (this.#closed && isPassing(error)) return closed()
    return toMillpondError(error, this.#settings.where)
  }
}

const isWrongType = (error: unknown): boolean => /WRONGTYPE/.test(String(error))
