/**
 * Gets what is not in memory: one flight per key in the process, one lock per key among the processes.
 *
 *   look ──there, and good──► answered
 *    │ ▲                          ▲
 *    ▼ └─ wait: another has it    │
 *   lock ──ours──► load ──► store ┘
 *    └── Redis gone ──► what is known, else load without
 *
 * The lock is a token with a short life, which its holder renews. If the holder dies, it runs out, and one of those who wait takes over. An invalidation
 * removes it; what was loaded under it is then not stored.
 */
import { randomUUID } from 'node:crypto'
import { Flights } from '../coalesce/flights.ts'
import { isMillpondError, MillpondError, storeError } from '../errors.ts'
import { sketch } from '../safe-error.ts'
import type { Entry } from './entry.ts'
import { Flying } from './flying.ts'
import { age, type Layers, newVersion, type Wanted } from './layers.ts'
import { type CheckedWrapOptions, drawn } from './options.ts'
import type { RedisSide } from './redis.ts'
import type { Lives, Stored } from './stored.ts'

export interface LoadContext {
  /** Aborted when everyone who waited has left, the time limit is over, or the value was invalidated meanwhile and is loaded anew. */
  signal: AbortSignal
  key: string
}

export type Load<In, Out> = (input: In, context: LoadContext) => Out | PromiseLike<Out>

/** How long the loader is left alone with a key after it has failed, while an older value is there. */
const RETRY = 1000
/** How long a lock lives unless it is renewed, in ms; less for short time limits. */
const LEASE = 3000
/** How long those who wait for another process do so without looking, in ms: they hear when it is done, if tracking is on. */
const POLL = { hearing: 500, deaf: 50 }

export interface LoaderCounts {
  hits: number
  stale: number
  loads: number
  failed: number
  joined: number
  waited: number
  cancelled: number
}

export interface Ground {
  layers: Layers
  counts: LoaderCounts
  /** Whether what others change is heard. */
  hearing: () => boolean
  onTrouble: (error: MillpondError, key: string) => void
}

export class Loader<In> {
  readonly #load: Load<In, unknown>
  readonly #options: CheckedWrapOptions<In>
  readonly #ground: Ground
  readonly #layers: Layers
  readonly #flights: Flights<Entry>
  readonly #refreshing = new Set<string>()
  readonly #lease: number

  constructor(load: Load<In, unknown>, options: CheckedWrapOptions<In>, ground: Ground) {
    this.#load = load
    this.#options = options
    this.#ground = ground
    this.#layers = ground.layers
    this.#flights = new Flights(options.timeout)
    this.#lease = Math.min(LEASE, Math.round(options.timeout / 2))
  }

  /** What is in memory and need not be waited for. */
  hit(key: string, input: In, wanted: Wanted): Entry | undefined {
    const entry = this.#layers.memory.get(key)
    if (entry === undefined) return undefined
    const now = performance.now()
    const standing = this.#layers.standing(entry, now)
    if (standing === 'fresh') {
      this.#ground.counts.hits++
      return entry
    }
    const due = now >= entry.retryAt
    if (standing !== 'stale' && (standing !== 'old' || due || now >= entry.errorUntil)) return undefined
    if (due) this.#refresh(key, input, wanted)
    this.#ground.counts.stale++
    return entry
  }

  /** @throws TimedOut, what the loader throws, PayloadNotEncodable, PayloadTooLarge, Closed, and the reason of `signal` */
  async get(key: string, input: In, wanted: Wanted, signal: AbortSignal | undefined): Promise<Entry> {
    const { counts } = this.#ground
    const { joined } = this.#flights.counts
    try {
      const run = (ended: AbortSignal) => this.#fly(key, input, wanted, false, ended)
      const flight = this.#flights.board(key, run, signal)
      counts.joined += this.#flights.counts.joined - joined
      const entry = await flight
      const now = performance.now()
      const fresh = age(entry, now) === 'fresh'
      if (!fresh && now < entry.errorUntil) counts.stale++
      // Without Redis nobody else has changed it.
      const late = this.#layers.redis !== undefined && now - entry.seenAt >= this.#layers.drift
      if ((!fresh || late) && now < entry.errorUntil && now >= entry.retryAt) this.#refresh(key, input, wanted)
      return entry
    } catch (error) {
      signal?.throwIfAborted()
      const known = isMillpondError(error, 'TimedOut') ? this.#fallback(this.#layers.memory.peek(key)) : undefined
      if (known === undefined) throw error
      return known
    }
  }

  /** In the background: nobody waits for it. */
  #refresh(key: string, input: In, wanted: Wanted): void {
    if (this.#refreshing.has(key)) return
    this.#refreshing.add(key)
    const failed = (error: unknown) => {
      const entry = this.#layers.memory.peek(key)
      if (entry !== undefined) entry.retryAt = performance.now() + RETRY
      this.#trouble(error, key)
    }
    this.#flights
      .board(key, (ended) => this.#fly(key, input, wanted, true, ended))
      .catch(failed)
      .finally(() => this.#refreshing.delete(key))
  }

  #trouble(error: unknown, key: string): void {
    if (isMillpondError(error, 'Closed')) return
    const told = error instanceof MillpondError ? error : undefined
    const message = `the loader failed: ${sketch(error)}`
    this.#ground.onTrouble(told ?? new MillpondError('HandlerFailed', message, { thrown: error }), key)
  }

  /** @param background whoever asked has an answer already: a stale one does not do */
  async #fly(key: string, input: In, wanted: Wanted, background: boolean, ended: AbortSignal): Promise<Entry> {
    const layers = this.#layers
    const flying = new Flying(key, this.#options.tags(input), ended, () => this.#flights.clear(key))
    const held = layers.hold(flying.tags)
    layers.sky.add(flying)
    let known: Entry | undefined
    try {
      for (;;) {
        flying.begin()
        try {
          const entry = await this.#attempt(flying, input, wanted, background, (seen) => {
            known = seen
          })
          if (entry !== undefined && (!flying.cancelled || flying.last)) return entry
        } catch (error) {
          if (!flying.cancelled || ended.aborted || flying.last) throw error
        }
        if (flying.cancelled) this.#ground.counts.cancelled++
        flying.throwIfEnded()
      }
    } catch (error) {
      const fallback = ended.aborted ? undefined : this.#fallback(known ?? layers.memory.peek(key))
      if (fallback === undefined) throw error
      this.#trouble(error, key)
      return fallback
    } finally {
      layers.sky.remove(flying)
      layers.letGo(held)
    }
  }

  /** What may be answered instead of an error. The loader is left alone for a moment. */
  #fallback(entry: Entry | undefined): Entry | undefined {
    const now = performance.now()
    if (entry === undefined || !this.#layers.servable(entry, now)) return undefined
    entry.retryAt = now + RETRY
    return entry
  }

  /** @returns undefined: to be tried again */
  async #attempt(
    flying: Flying,
    input: In,
    wanted: Wanted,
    background: boolean,
    onKnown: (entry: Entry) => void,
  ): Promise<Entry | undefined> {
    const layers = this.#layers
    const { redis } = layers
    if (redis === undefined) {
      const known = layers.memory.peek(flying.key)
      // One that was set while this was being loaded.
      if (known !== undefined && layers.standing(known, performance.now()) === 'fresh') return known
      return this.#loadAlone(flying, input, wanted)
    }
    const token = randomUUID()
    let acquired: 'ours' | 'changed' | number
    let isThere = true
    try {
      const { entry, seen } = await layers.look(redis, flying, wanted)
      isThere = seen !== undefined
      if (flying.cancelled) return undefined
      if (entry !== undefined) {
        onKnown(entry)
        const standing = age(entry, performance.now())
        if (standing === 'fresh' || (standing === 'stale' && !background)) return entry
      }
      acquired = await redis.acquire(flying.key, token, this.#lease, seen)
    } catch (error) {
      if (!isStoreError(error)) throw error
      const known = this.#knownWithoutRedis(flying.key, background)
      if (known !== undefined) return known
      if (!isThere) layers.forgetUntaken(flying.key)
      return this.#loadAlone(flying, input, wanted)
    }
    if (acquired === 'changed') return undefined
    if (acquired === 'ours') {
      if (!isThere) layers.forgetUntaken(flying.key)
      return this.#loadHeld(redis, flying, input, wanted, token)
    }
    this.#ground.counts.waited++
    await flying.wait(Math.min(acquired + 5, this.#ground.hearing() ? POLL.hearing : POLL.deaf))
    return undefined
  }

  #knownWithoutRedis(key: string, background: boolean): Entry | undefined {
    const known = this.#layers.memory.peek(key)
    const now = performance.now()
    if (known === undefined || !this.#layers.servable(known, now)) return undefined
    const young = now - known.seenAt < this.#layers.drift
    if (young && now < known.freshUntil) return known
    return !background && known.errorUntil > known.freshUntil ? known : undefined
  }

  /** Nobody else is told, and nobody else is kept from doing the same. */
  async #loadAlone(flying: Flying, input: In, wanted: Wanted): Promise<Entry | undefined> {
    const held = this.#layers.hold(flying.tags)
    try {
      flying.markers = this.#layers.assumed(held)
      const begun = this.#layers.begin()
      const value = await this.#called(flying, input)
      return this.#layers.keep(flying, value, this.#livesOf(value), { version: '', encoded: undefined, begun, wanted })
    } finally {
      this.#layers.letGo(held)
    }
  }

  async #loadHeld(
    redis: RedisSide,
    flying: Flying,
    input: In,
    wanted: Wanted,
    token: string,
  ): Promise<Entry | undefined> {
    const { key } = flying
    /** Whether the lock has to be released. */
    let held = true
    /** Whether news that the lock is another's ends the load. */
    let loading = true
    let lost = false
    const renew = () => {
      const heard = (ours: boolean) => {
        if (ours) return
        lost = true
        if (loading) flying.cancel()
      }
      // If it cannot be asked, storing will tell.
      redis.renew(key, token, this.#lease).then(heard, () => undefined)
    }
    const timer = setInterval(renew, this.#lease / 3)
    flying.confirm = renew
    try {
      const begun = this.#layers.begin()
      flying.markers = await this.#markers(redis, flying)
      const value = await this.#called(flying, input)
      const lives = this.#livesOf(value)
      const stored = lives.fresh > 0 ? await this.#stored(value, lives, flying) : undefined
      if (flying.cancelled && !flying.last) return undefined
      // The lock goes with what is written now, and that is heard of before it is answered: from here on it is no news.
      flying.confirm = undefined
      loading = false
      const written = await this.#written(redis, key, token, stored, lives)
      held = written === undefined
      // Where nobody knows, one who was told that the lock is another's had better believe it.
      const done = written === undefined && lost ? false : written
      if (done === false) flying.cancelled = true
      if (done === false && !flying.last) return undefined
      const version = done === true && stored !== undefined ? stored.version : ''
      return this.#layers.keep(flying, value, lives, { version, encoded: stored, begun, wanted })
    } finally {
      clearInterval(timer)
      flying.confirm = undefined
      loading = false
      // Those who wait should not have to wait for it to run out; if it must, they can.
      if (held) redis.release(key, token).catch(() => undefined)
    }
  }

  async #markers(redis: RedisSide, flying: Flying) {
    if (flying.tags.length === 0) return []
    try {
      return await this.#layers.learn(redis, flying.tags)
    } catch (error) {
      if (!isStoreError(error)) throw error
      return flying.tags.map((name) => ({ name, marker: newVersion() }))
    }
  }

  /** undefined where Redis is needed for it and gone. */
  async #stored(value: unknown, lives: Lives, flying: Flying): Promise<Stored | undefined> {
    try {
      return await this.#layers.encode(value, lives, flying.markers)
    } catch (error) {
      if (!isStoreError(error)) throw error
      return undefined
    }
  }

  /** Whether it was written under the lock; undefined: it cannot be said, or there was nothing to write. */
  async #written(
    redis: RedisSide,
    key: string,
    token: string,
    stored: Stored | undefined,
    lives: Lives,
  ): Promise<boolean | undefined> {
    // What is there would come back, though the loader says that there is nothing.
    if (lives.fresh === 0) return redis.clear(key, token).catch(() => undefined)
    if (stored === undefined) return undefined
    try {
      return await redis.commit(key, token, stored)
    } catch (error) {
      if (!isStoreError(error)) throw error
      this.#ground.onTrouble(storeError(error, 'storing the value'), key)
      return undefined
    }
  }

  async #called(flying: Flying, input: In): Promise<unknown> {
    const { counts } = this.#ground
    counts.loads++
    try {
      return await flying.heeding((signal) => this.#load(input, { signal, key: flying.key }))
    } catch (error) {
      if (!flying.cancelled) counts.failed++
      throw error
    }
  }

  #livesOf(value: unknown): Lives {
    if (value !== null && value !== undefined) return drawn(this.#options.life)
    return { fresh: this.#options.negative, stale: 0, error: 0 }
  }
}

const STORE = ['StoreUnavailable', 'StoreBusy', 'StoreFull', 'StoreFailed'] as const

/** Redis is gone or does not take it: the cache goes on without. */
const isStoreError = (error: unknown): boolean => STORE.some((code) => isMillpondError(error, code))
