/** What the cache says to Redis. Every call is answered within the time limit, and at once while Redis is known to be gone. */
import { randomBytes } from 'node:crypto'
import { MillpondError } from '../errors.ts'
import { clientFor, connected } from '../stores/redis/connection/client.ts'
import { closed, isNoScript, isPassing, toMillpondError } from '../stores/redis/errors.ts'
import type { Client } from '../stores/redis/settings.ts'
import { type Kind, type Settings, settingsOf } from '../stores/redis/settings.ts'
import { Names } from './names.ts'
import type { CheckedCacheOptions } from './options.ts'
import { fetchPieces, PIECE, removePieces, storePieces } from './pieces.ts'
import { ACQUIRE, APPEND, COMMIT, DROP, MARKER, PUT, RELEASE, RENEW, type Script, TABLE } from './scripts.ts'
import { headOf, lifeOf, parseStored, type Stored, VERSION_BYTES } from './stored.ts'
import type { StructureList } from './structures.ts'

/** A marker outlives every value that was stored under it: those live for 24 days at most. */
const MARKER_LIFE = 50 * 24 * 3_600_000
/** What its URL may hold; the other options of a cache are no options of Redis. */
const CACHE: Kind = {
  name: 'the URL of a cache',
  known: ['prefix', 'timeout', 'cluster', 'client', 'db'],
  prefix: 'cache',
  timeout: 2000,
}
/** How long calls fail at once after one that was not answered in time. */
const PAUSE = 1000
/** How often a cluster is asked at most who has which slots. */
const LOOK = 200
/** More than any head without tags has; the check of a version reads no more. */
const HEAD = 10

export interface Found {
  stored: Stored
  /** Milliseconds since it was written. */
  age: number
}

/** What is there is no value of ours, or spoilt. */
export interface Spoilt {
  reason: string
}

export type Acquired = 'ours' | 'changed' | number

type Argument = string | number | Buffer

export class RedisSide implements StructureList {
  readonly client: Client
  readonly names: Names
  readonly #settings: Settings
  /** By `performance.now()`; calls before it are refused. */
  #pausedUntil = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  #closed = false

  private constructor(client: Client, names: Names, settings: Settings) {
    this.client = client
    this.names = names
    this.#settings = settings
  }

  /** @throws InvalidOption, StoreUnavailable */
  static async open(url: string, options: CheckedCacheOptions['redis']): Promise<RedisSide> {
    const settings = settingsOf(url, options, CACHE)
    const client = await clientFor(settings)
    try {
      await connected(client, settings)
      return new RedisSide(client, new Names(settings.prefix), settings)
    } catch (error) {
      if (settings.client === undefined) client.disconnect()
      throw error
    }
  }

  /** Whether the last that was heard of it is good. */
  get available(): boolean {
    return !this.#closed && this.client.status === 'ready' && performance.now() >= this.#pausedUntil
  }

  /** @throws StoreUnavailable */
  async read(key: string): Promise<Found | Spoilt | undefined> {
    const name = this.names.value(key)
    // A value in pieces may be replaced while they are fetched.
    for (let attempt = 0; attempt < 3; attempt++) {
      const replies = await this.#within(() => this.client.pipeline().getBuffer(name).pttl(name).exec())
      const [error, bytes] = replies?.[0] ?? [new Error('Connection is closed.'), null]
      if (error !== null) {
        if (/WRONGTYPE/.test(String(error))) return { reason: 'it is no string' }
        throw this.#coded(error)
      }
      if (!Buffer.isBuffer(bytes)) return undefined
      const left = Number(replies?.[1]?.[1])
      try {
        const stored = parseStored(bytes)
        const life = lifeOf(stored)
        if (!(left >= 0 && left <= life)) return { reason: `it has ${left} ms of ${life} left` }
        const age = life - left
        if (stored.pieces === 0) return { stored, age }
        const body = await fetchPieces(this.#pieceClient, this.names.pieces(key), stored)
        if (body !== undefined) return { stored: { ...stored, body }, age }
      } catch (error) {
        if (error instanceof RangeError || error instanceof TypeError) return { reason: error.message }
        throw error
      }
    }
    return { reason: 'its pieces are not there' }
  }

  /** The version of what is there and the milliseconds that it has left, without fetching it. @throws StoreUnavailable */
  async check(key: string): Promise<{ version: string; left: number } | undefined> {
    const name = this.names.value(key)
    const replies = await this.#within(() =>
      this.client
        .pipeline()
        .getrangeBuffer(name, 0, HEAD - 1)
        .pttl(name)
        .exec(),
    )
    const [error, head] = replies?.[0] ?? [new Error('Connection is closed.'), null]
    if (error !== null && !/WRONGTYPE/.test(String(error))) throw this.#coded(error)
    if (!Buffer.isBuffer(head) || head.length < HEAD) return undefined
    return { version: head.toString('latin1', HEAD - VERSION_BYTES), left: Number(replies?.[1]?.[1]) }
  }

  /** @param seen the version that was read; null: something that is not ours */
  async acquire(key: string, token: string, lease: number, seen: string | undefined | null): Promise<Acquired> {
    const known = seen === null ? '*' : Buffer.from(seen ?? '', 'latin1')
    const left = Number(await this.#run(ACQUIRE, this.names.value(key), this.names.lock(key), token, lease, known))
    return left === 0 ? 'ours' : left < 0 ? 'changed' : left
  }

  async renew(key: string, token: string, lease: number): Promise<boolean> {
    return Number(await this.#run(RENEW, this.names.lock(key), token, lease)) === 1
  }

  async release(key: string, token: string): Promise<void> {
    await this.#run(RELEASE, this.names.lock(key), token, this.names.channel, key)
  }

  /** @returns whether it is stored; not if the lock is no longer the token's */
  async commit(key: string, token: string, stored: Stored): Promise<boolean> {
    const { names, life, value, pieces } = await this.#laid(key, stored)
    const done = Number(await this.#run(COMMIT, ...names, token, value, life, this.names.pieces(key))) === 1
    // If they stay they run out; that the value was overtaken has to be told in any case.
    if (!done && pieces > 0)
      await removePieces(this.#pieceClient, this.names.pieces(key), stored, pieces).catch(() => undefined)
    return done
  }

  async put(key: string, stored: Stored): Promise<void> {
    const { names, life, value } = await this.#laid(key, stored)
    await this.#run(PUT, ...names, value, life, this.names.pieces(key), this.names.channel, key)
  }

  /** @returns whether there was a value */
  async drop(key: string): Promise<boolean> {
    return (await this.#drop(key, '')) === 1
  }

  /** For who has the lock and found that there is no value. @returns whether it is gone; not if the lock is no longer the token's */
  async clear(key: string, token: string): Promise<boolean> {
    return (await this.#drop(key, token)) >= 0
  }

  async #drop(key: string, token: string): Promise<number> {
    const names = [this.names.value(key), this.names.lock(key)]
    return Number(await this.#run(DROP, ...names, this.names.pieces(key), this.names.channel, key, token))
  }

  /** The tags' markers, made where there are none. */
  markers(tags: readonly string[]): Promise<string[]> {
    return Promise.all(
      tags.map(async (tag) => {
        const marker = await this.#run(MARKER, this.names.tag(tag), randomBytes(VERSION_BYTES), MARKER_LIFE)
        return Buffer.isBuffer(marker) ? marker.toString('latin1') : ''
      }),
    )
  }

  /** Gives the tag another marker: every value that was stored under the old one is over. */
  async remark(tag: string): Promise<void> {
    const marker = randomBytes(VERSION_BYTES)
    await this.#within(() => this.client.set(this.names.tag(tag), marker, 'PX', MARKER_LIFE))
  }

  async load(freshId: string): Promise<readonly string[]> {
    let list: unknown
    try {
      list = await this.#run(TABLE, this.names.structures, freshId)
    } catch (error) {
      if (/WRONGTYPE/.test(String(error))) throw new TypeError('the list of structures is of another type')
      throw error
    }
    if (!Array.isArray(list)) throw new TypeError('the list of structures is none')
    return list.map(String)
  }

  async append(id: string, length: number, structures: readonly string[]): Promise<boolean> {
    return Number(await this.#run(APPEND, this.names.structures, id, length, ...structures)) === 1
  }

  /** Any other command. @throws StoreUnavailable, StoreFull, StoreFailed, Closed */
  call<T>(send: (client: Client) => Promise<T>): Promise<T> {
    return this.#within(() => send(this.client))
  }

  close(): void {
    this.#closed = true
    if (this.#settings.client === undefined) this.client.disconnect()
  }

  /** What is to be stored at the key itself, once the pieces are where they belong. */
  async #laid(key: string, stored: Stored): Promise<{ names: string[]; life: number; value: Buffer; pieces: number }> {
    const names = [this.names.value(key), this.names.lock(key)]
    const life = lifeOf(stored)
    if (stored.body.length <= PIECE)
      return { names, life, value: Buffer.concat([headOf(stored), stored.body]), pieces: 0 }
    const pieces = await storePieces(this.#pieceClient, this.names.pieces(key), stored, life)
    return { names, life, value: headOf({ ...stored, pieces }), pieces }
  }

  readonly #pieceClient = {
    get: (name: string) => this.#within(() => this.client.getBuffer(name)),
    set: async (name: string, piece: Buffer, life: number) => {
      await this.#within(() => this.client.set(name, piece, 'PX', life))
    },
    remove: async (name: string) => {
      await this.#within(() => this.client.unlink(name))
    },
  }

  async #run({ sha, text, keys }: Script, ...values: Argument[]): Promise<unknown> {
    try {
      return await this.#within(() => this.client.callBuffer('evalsha', sha, keys, ...values))
    } catch (error) {
      if (!isNoScript(error instanceof MillpondError ? error.cause : error)) throw error
      return this.#within(() => this.client.callBuffer('eval', text, keys, ...values))
    }
  }

  async #within<T>(send: () => Promise<T>): Promise<T> {
    const now = performance.now()
    if (this.#closed) throw closed()
    if (now < this.#pausedUntil) throw this.#coded(new Error('Connection is closed. (it did not answer a moment ago)'))
    // Only one call at a time finds out whether it is back; those who come meanwhile do not wait for that.
    if (this.#pausedUntil > 0) this.#pausedUntil = now + this.#settings.timeout
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        // Of a cluster the others answer.
        if (!('nodes' in this.client)) this.#pausedUntil = performance.now() + PAUSE
        reject(new Error(`Command timed out after ${this.#settings.timeout} ms`))
      }, this.#settings.timeout)
    })
    try {
      const answer = await Promise.race([send(), late])
      this.#pausedUntil = 0
      return answer
    } catch (error) {
      if (isPassing(error)) this.#lookAround()
      throw this.#coded(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** A node that does not answer may have lost its slots to another, which nobody tells the client. */
  #lookAround(): void {
    const now = performance.now()
    if (!('refreshSlotsCache' in this.client) || now < this.#lookedAt + LOOK || this.#closed) return
    this.#lookedAt = now
    this.client.refreshSlotsCache()
  }

  #coded(error: unknown): MillpondError {
    if (this.#closed && isPassing(error)) return closed()
    return toMillpondError(error, this.#settings.where)
  }
}
