/**
 * Gets what is not in memory: one load per key in the process, one lock per key among the processes.
 *
 *   look ──there, and good──► answered
 *    │ ▲                          ▲
 *    ▼ └─ wait: another has it    │
 *   lock ──ours──► load ──► store ┘
 *    └── Redis gone ──► what is known, else load without
 *
 * The lock is a token with a short life, which its holder renews. If the holder dies, the lock expires, and one of
 * those who wait takes over. An invalidation removes it; what was loaded under it is then not stored.
 */

import { randomUUID } from 'node:crypto'
import { Flights } from '../../coalesce/flights.ts'
import { isMillpondError, MillpondError, storeError } from '../../values/errors/errors.ts'
import { errorSummary } from '../../values/errors/safe-error.ts'
import { inThisContext } from '../../values/runtime/async-context.ts'
import { type Layers, newVersion, type Wanted } from '../layers.ts'
import type { Entry } from '../memory/entry.ts'
import { type CheckedWrapOptions, withJitter } from '../options.ts'
import type { Acquired } from '../redis/redis-layer.ts'
import type { TagMarker } from '../redis/stored-value.ts'
import { LoadLock } from './load-lock.ts'
import type { PendingLoad } from './pending-load.ts'

export interface LoadContext {
  /** Aborted when everyone who waited has left, the time limit is over, or the value was invalidated meanwhile and is loaded anew. */
  signal: AbortSignal
  /** What `key` made of the input. */
  key: string
}

/** Loads the value of an input. `null` and `undefined` say that there is none. */
export type Load<In, Out> = (input: In, context: LoadContext) => Out | PromiseLike<Out>

/** Ms for which a loader that failed is not called again for the key, if there is an older value to answer with. */
const RETRY_DELAY = 1000
/** How many ms a lock lives unless it is renewed; less for short time limits. */
const MAX_LEASE = 3000
/** Ms between looks while another process loads. With tracking (`hearing`) that process's end is heard of, so looks may be rare. */
const POLL_INTERVAL = { hearing: 500, deaf: 50 }

export interface LoaderCounts {
  /** Answered from memory, fresh. */
  hits: number
  /** Answered with an older value. */
  stale: number
  /** Calls of loaders, and those of them that failed. */
  loads: number
  failed: number
  /** Callers who waited for a load of this process. */
  joined: number
  /** Waits for another process. */
  waited: number
  /** Loads that were begun anew since the value was invalidated meanwhile. */
  cancelled: number
}

/** A call of the cached function that memory could not answer. */
interface Miss<In> {
  key: string
  input: In
  wanted: Wanted
  /** Nobody waits for it: a stale value does not do. */
  background: boolean
}

export class Loader<In> {
  readonly #load: Load<In, unknown>
  readonly #options: CheckedWrapOptions<In>
  readonly #layers: Layers
  readonly #counts: LoaderCounts
  readonly #flights: Flights<Entry>
  readonly #refreshing = new Set<string>()
  readonly #lease: number

  constructor(load: Load<In, unknown>, options: CheckedWrapOptions<In>, layers: Layers, counts: LoaderCounts) {
    this.#load = inThisContext(load)
    this.#options = options
    this.#layers = layers
    this.#counts = counts
    this.#flights = new Flights(options.timeout)
    this.#lease = Math.min(MAX_LEASE, Math.round(options.timeout / 2))
  }

  /** What is in memory and need not be waited for. */
  hit(key: string, input: In, wanted: Wanted): Entry | undefined {
    const entry = this.#layers.memory.get(key)
    if (entry === undefined) return undefined
    const now = performance.now()
    const standing = this.#layers.standing(entry, now)
    if (standing === 'fresh') {
      this.#counts.hits++
      return entry
    }
    const due = now >= entry.retryAt
    if (standing !== 'stale' && (standing !== 'old' || due || now >= entry.errorUntil)) return undefined
    if (due) void this.#refresh(key, input, wanted)
    this.#counts.stale++
    return entry
  }

  /**
   * Loads the value, or joins a load under way.
   * @throws TimedOut, what the loader throws, PayloadNotEncodable, PayloadTooLarge, Closed, and the reason of `signal`
   */
  async get(key: string, input: In, wanted: Wanted, signal: AbortSignal | undefined): Promise<Entry> {
    const { joined } = this.#flights.counts
    try {
      const loading = this.#join({ key, input, wanted, background: false }, signal)
      this.#counts.joined += this.#flights.counts.joined - joined
      const entry = await loading
      const now = performance.now()
      if (now >= entry.errorUntil) return entry
      const fresh = entry.age(now) === 'fresh'
      if (!fresh) this.#counts.stale++
      // Without Redis nobody else has changed it.
      const late = this.#layers.redis !== undefined && now - entry.seenAt >= this.#layers.drift
      if ((!fresh || late) && now >= entry.retryAt) void this.#refresh(key, input, wanted)
      return entry
    } catch (error) {
      signal?.throwIfAborted()
      const known = isMillpondError(error, 'TimedOut') ? this.#fallback(this.#layers.memory.peek(key)) : undefined
      if (known === undefined) throw error
      return known
    }
  }

  /** In the background: nobody waits for it. */
  async #refresh(key: string, input: In, wanted: Wanted): Promise<void> {
    if (this.#refreshing.has(key)) return
    this.#refreshing.add(key)
    try {
      await this.#join({ key, input, wanted, background: true })
    } catch (error) {
      const entry = this.#layers.memory.peek(key)
      if (entry !== undefined) entry.retryAt = performance.now() + RETRY_DELAY
      this.#report(error, key)
    }
    this.#refreshing.delete(key)
  }

  #join(miss: Miss<In>, signal?: AbortSignal): Promise<Entry> {
    return this.#flights.join(miss.key, (ended) => this.#get(miss, ended), signal)
  }

  #report(error: unknown, key: string): void {
    if (isMillpondError(error, 'Closed')) return
    const known = error instanceof MillpondError ? error : undefined
    const message = `the loader failed: ${errorSummary(error)}`
    this.#layers.onError(known ?? new MillpondError('HandlerFailed', message, { thrown: error }), key)
  }

  async #get(miss: Miss<In>, ended: AbortSignal): Promise<Entry> {
    const { key } = miss
    const layers = this.#layers
    const load = layers.track(key, this.#options.tags(miss.input), ended, () => this.#flights.clear(key))
    try {
      for (;;) {
        load.begin()
        try {
          const entry = await this.#attempt(load, miss)
          if (entry !== undefined && (!load.cancelled || load.last)) return entry
        } catch (error) {
          if (!load.cancelled || ended.aborted || load.last) throw error
        }
        if (load.cancelled) this.#counts.cancelled++
        load.throwIfEnded()
      }
    } catch (error) {
      const fallback = ended.aborted ? undefined : this.#fallback(load.found ?? layers.memory.peek(key))
      if (fallback === undefined) throw error
      this.#report(error, key)
      return fallback
    } finally {
      layers.untrack(load)
    }
  }

  /** The old entry, if it may be answered instead of an error. Then the loader is not called again for a moment. */
  #fallback(entry: Entry | undefined): Entry | undefined {
    const now = performance.now()
    if (entry === undefined || !this.#layers.servable(entry, now)) return undefined
    entry.retryAt = now + RETRY_DELAY
    return entry
  }

  /** @returns undefined: to be tried again */
  async #attempt(load: PendingLoad, miss: Miss<In>): Promise<Entry | undefined> {
    const layers = this.#layers
    const { key, background } = miss
    const { redis, memory } = layers
    if (redis === undefined) {
      const known = memory.peek(key)
      // One that was set while this was being loaded.
      if (known !== undefined && layers.standing(known, performance.now()) === 'fresh') return known
      return this.#loadValue(load, miss)
    }
    const token = randomUUID()
    let acquired: Acquired | 'unreachable'
    let isThere = true
    try {
      const { entry, seen } = await layers.look(redis, load, miss.wanted)
      isThere = seen !== undefined
      if (load.cancelled) return undefined
      if (entry !== undefined) {
        load.found = entry
        const age = entry.age(performance.now())
        if (age === 'fresh' || (age === 'stale' && !background)) return entry
      }
      acquired = await redis.acquire(key, token, this.#lease, seen)
    } catch (error) {
      if (!isStoreError(error)) throw error
      const known = this.#knownWithoutRedis(key, background)
      if (known !== undefined) return known
      acquired = 'unreachable'
    }
    if (acquired === 'changed') return undefined
    if (typeof acquired === 'number') {
      this.#counts.waited++
      await load.wait(Math.min(acquired + 5, POLL_INTERVAL[layers.changes.on ? 'hearing' : 'deaf']))
      return undefined
    }
    // One that Redis did not take is not to come back for the new one, however long that takes.
    if (!isThere && memory.peek(key)?.version === '') layers.forget(key)
    if (acquired === 'unreachable') return this.#loadValue(load, miss)
    const lock = new LoadLock(redis, load, token, this.#lease)
    try {
      return await this.#loadValue(load, miss, lock)
    } finally {
      lock.end()
    }
  }

  #knownWithoutRedis(key: string, background: boolean): Entry | undefined {
    const known = this.#layers.memory.peek(key)
    const now = performance.now()
    if (known === undefined || !this.#layers.servable(known, now)) return undefined
    const young = now - known.seenAt < this.#layers.drift
    if (young && now < known.freshUntil) return known
    return !background && known.errorUntil > known.freshUntil ? known : undefined
  }

  /**
   * @param lock without it the value is not stored in Redis, and other processes may load it too
   * @returns undefined: to be tried again
   */
  async #loadValue(load: PendingLoad, { input, wanted }: Miss<In>, lock?: LoadLock): Promise<Entry | undefined> {
    const layers = this.#layers
    const begun = layers.begin()
    load.markers = lock === undefined ? layers.knownMarkers(load) : await this.#markers(lock, load)
    const value = await this.#call(load, input)
    const isNothing = value === null || value === undefined
    const { negative, life } = this.#options
    const lives = isNothing ? { fresh: negative, stale: 0, error: 0 } : withJitter(life)
    if (lock === undefined) return layers.keep(load, value, lives, { version: '', encoded: undefined, begun, wanted })
    const { redis, token } = lock
    const encoded = lives.fresh > 0 ? await unlessStoreError(layers.encode(value, lives, load.markers)) : undefined
    if (load.cancelled && !load.last) return undefined
    const stored = await lock.write(async () => {
      // What is there would come back, though the loader says that there is nothing.
      if (lives.fresh === 0) return redis.drop(load.key, token).then(isDropped, () => undefined)
      if (encoded === undefined) return undefined
      return unlessStoreError(redis.commit(load.key, token, encoded), (error) =>
        layers.onError(storeError(error, 'storing the value'), load.key),
      )
    })
    if (stored === false) load.cancelled = true
    if (stored === false && !load.last) return undefined
    const version = stored === true && encoded !== undefined ? encoded.version : ''
    return layers.keep(load, value, lives, { version, encoded, begun, wanted })
  }

  async #markers({ redis }: LoadLock, { tagNames }: PendingLoad): Promise<TagMarker[]> {
    const markers = await unlessStoreError(this.#layers.lookUpMarkers(redis, tagNames))
    return markers ?? tagNames.map((name) => ({ name, marker: newVersion() }))
  }

  async #call(load: PendingLoad, input: In): Promise<unknown> {
    this.#counts.loads++
    try {
      return await load.run((signal) => this.#load(input, { signal, key: load.key }))
    } catch (error) {
      if (!load.cancelled) this.#counts.failed++
      throw error
    }
  }
}

const isDropped = (had: boolean | undefined): boolean => had !== undefined

const isStoreError = (error: unknown): boolean =>
  (['StoreUnavailable', 'StoreBusy', 'StoreFull', 'StoreFailed'] as const).some((code) => isMillpondError(error, code))

/** undefined where Redis is gone or refuses: the cache goes on without. */
async function unlessStoreError<T>(promise: Promise<T>, onError?: (error: unknown) => void): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (!isStoreError(error)) throw error
    onError?.(error)
    return undefined
  }
}
