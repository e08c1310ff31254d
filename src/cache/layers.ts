/**
 * The process' memory and Redis as one: what is known of a key, and how sure that is.
 *
 *   fresh   good, and nothing says that it has changed
 *   stale   its `ttl` is over, but not its `stale`
 *   old     both are over
 *   unsure  Redis has to be asked: it may have changed, or nothing was heard for too long
 *   over    invalidated
 */
import { randomBytes } from 'node:crypto'
import type { Format } from '../values/encoding/accept.ts'
import { isMillpondError, MillpondError } from '../values/errors/errors.ts'
import type { OnError } from './error-reporter.ts'
import { PendingLoad } from './loading/pending-load.ts'
import { Entry } from './memory/entry.ts'
import { Memory } from './memory/memory.ts'
import { Tags, type TagUse } from './memory/tags.ts'
import { sizeOfValue } from './memory/value-size.ts'
import { withPlainBytes } from './plain-bytes.ts'
import { type Rendered, render } from './ready-answer.ts'
import type { Begun, ChangeListener, Changes, Seen } from './redis/change-tracker.ts'
import type { Codec } from './redis/codec.ts'
import type { RedisLayer } from './redis/redis-layer.ts'
import { type Encoded, type Lives, type StoredValue, type TagMarker, VERSION_BYTES } from './redis/stored-value.ts'

export type Standing = 'fresh' | 'stale' | 'old' | 'unsure' | 'over'
/** The form of a value that is asked for. */
export type Wanted = 'value' | Format

export interface LayerSettings {
  /** Most bytes in the process. */
  memory: number
  /** Milliseconds. */
  drift: number
  onError: OnError
}

export interface Looked {
  entry?: Entry
  /** The version that is in Redis; undefined: nothing is there; null: something that is not ours. */
  seen: string | undefined | null
}

/** How a value was loaded. */
export interface Loaded {
  /** In Redis; empty: it is not there. */
  version: string
  /** As it is in Redis; without it the value itself has to be kept. */
  encoded: Encoded | undefined
  /** When the load began. */
  begun: Begun
  wanted: Wanted
}

/** Bytes that the status and headers of an answer take. */
const ANSWER_OVERHEAD = 500

export class Layers implements ChangeListener {
  readonly redis: RedisLayer | undefined
  readonly changes: Changes
  readonly memory: Memory
  readonly drift: number
  readonly onError: OnError
  readonly tags = new Tags()
  /** Of the process' loads, by key. */
  readonly #loads = new Map<string, Set<PendingLoad>>()
  /** Values that were found in Redis, and those that could not be read. */
  readonly counts = { found: 0, corrupt: 0 }
  readonly #codec: Codec

  constructor(redis: RedisLayer | undefined, changes: Changes, codec: Codec, settings: LayerSettings) {
    this.redis = redis
    this.changes = changes
    this.drift = settings.drift
    this.onError = settings.onError
    this.#codec = codec
    this.memory = new Memory(settings.memory, (entry) => this.#release(entry))
  }

  standing(entry: Entry, now: number): Standing {
    if (entry.over) return 'over'
    // An invalidation of what is not in Redis changes nothing there, so nobody hears of it.
    if (this.redis !== undefined && entry.version === '' && now - entry.seenAt >= this.drift) return 'unsure'
    if (!this.#isTrusted(entry, now)) return 'unsure'
    if (entry.uses.length > 0) {
      const tagged = entry.tagged(({ tag }) => tag.marker !== undefined && this.#isTrusted(tag, now))
      if (tagged !== true) return tagged === false ? 'over' : 'unsure'
    }
    return entry.age(now)
  }

  /** Whether it need not be looked up in Redis: it is young, or every change until a moment ago has been heard. */
  #isTrusted({ seenAt, epoch, suspect }: Seen, now: number): boolean {
    if (suspect) return false
    return now - seenAt < this.drift || (epoch === this.changes.epoch && now - this.changes.aliveAt < this.drift)
  }

  /** To be taken before a look or load, both at once: a later epoch would vouch for what was missed in between. */
  begin(): Begun {
    return { seenAt: performance.now(), epoch: this.changes.epoch }
  }

  /** Whether it may be answered while no newer value can be had: it is not too old, and no invalidation of it was heard of. */
  servable(entry: Entry, now: number): boolean {
    if (entry.over || entry.suspect || now >= entry.errorUntil) return false
    return entry.uses.every(({ tag, marker }) => !tag.suspect && (tag.marker ?? marker) === marker)
  }

  /** A load that hears what happens to its key and tags, until it is untracked. Its arguments are those of `PendingLoad`. */
  track(key: string, tags: readonly string[] = [], signal?: AbortSignal, onLast?: () => void): PendingLoad {
    const taken = tags.map((name) => this.tags.take(name))
    const load = new PendingLoad(key, taken, signal, onLast)
    this.#loads.set(key, (this.#loads.get(key) ?? new Set()).add(load))
    return load
  }

  untrack(load: PendingLoad): void {
    const all = this.#loads.get(load.key)
    all?.delete(load)
    if (all?.size === 0) this.#loads.delete(load.key)
    for (const tag of load.tags) this.tags.giveBack(tag)
  }

  /**
   * What is in Redis; from memory, if that is the same.
   * @param wanted is made of it, so that what cannot be read is found out
   * @throws StoreUnavailable and others of the store
   */
  async look(redis: RedisLayer, load: PendingLoad, wanted: Wanted): Promise<Looked> {
    const { key } = load
    const begun = this.begin()
    const known = this.memory.peek(key)
    if (known !== undefined && known.version !== '' && !known.over) {
      const version = await redis.check(key)
      if (version === known.version && !known.over) {
        Object.assign(known, begun, { suspect: load.touched })
        this.counts.found++
        return this.#withMarkers(redis, known)
      }
      if (version === undefined) {
        this.end(known)
        return { seen: undefined }
      }
    }
    const found = await redis.read(key)
    if (found === undefined) {
      // What was loaded a moment ago, and not taken by Redis, is not there for that alone.
      const untaken = known?.version === '' && performance.now() - known.seenAt < this.drift
      if (known !== undefined && !untaken) this.end(known)
      return { seen: undefined }
    }
    if ('reason' in found) return this.#corrupt(key, found.reason, null)
    const { stored, age } = found
    const uses = this.#usesOf(stored.tags)
    const fetched = new Entry({ ...stored, key, age, encoded: stored, uses, ...begun, suspect: load.touched })
    try {
      return await this.#checked(redis, load, fetched, wanted)
    } catch (error) {
      this.#release(fetched)
      throw error
    }
  }

  #usesOf(markers: readonly TagMarker[]): TagUse[] {
    return markers.map(({ name, marker }) => ({ tag: this.tags.take(name), marker }))
  }

  /** What was fetched, if it can be read and its tags' markers are still the same: then it is kept. */
  async #checked(redis: RedisLayer, load: PendingLoad, fetched: Entry, wanted: Wanted): Promise<Looked> {
    const looked = await this.#withMarkers(redis, fetched)
    const { entry } = looked
    if (entry === undefined) return looked
    try {
      await (wanted === 'value' ? this.valueIn(entry) : this.renderedIn(entry, wanted))
    } catch (error) {
      if (isMillpondError(error, 'PayloadNotDecodable')) {
        this.end(entry)
        return this.#corrupt(load.key, error.message, entry.version)
      }
      // This form cannot carry the value: only the calls that want this form reject.
      if (!isMillpondError(error, 'PayloadNotEncodable')) throw error
    }
    this.counts.found++
    // What was heard while it was fetched and read is about it as well.
    entry.suspect ||= load.touched
    this.#put(entry, load)
    return looked
  }

  #corrupt(key: string, reason: string, seen: string | null): Looked {
    this.counts.corrupt++
    const message = `what Redis has for the key cannot be read, which counts as nothing being there: ${reason}`
    this.onError(new MillpondError('PayloadNotDecodable', message), key)
    return { seen }
  }

  /** Looks up the markers of its tags that are not known. */
  async #withMarkers(redis: RedisLayer, entry: Entry): Promise<Looked> {
    const now = performance.now()
    const tags = entry.uses.map(({ tag }) => tag)
    const unknown = tags.filter((tag) => tag.marker === undefined || !this.#isTrusted(tag, now))
    await this.lookUpMarkers(
      redis,
      unknown.map(({ name }) => name),
    )
    const { version: seen } = entry
    if (entry.tagged(({ tag }) => tag.marker !== undefined) === true) return { entry, seen }
    this.end(entry)
    return { seen }
  }

  /** The tags' markers as they are in Redis now. */
  async lookUpMarkers(redis: RedisLayer, names: readonly string[]): Promise<TagMarker[]> {
    const begun = this.begin()
    for (const name of names) {
      const tag = this.tags.get(name)
      // What is heard from now on is newer than the answer, and stays.
      if (tag !== undefined) tag.suspect = false
    }
    const markers = await redis.markers(names)
    return names.map((name, index) => {
      const marker = markers[index] ?? ''
      const tag = this.tags.get(name)
      if (tag !== undefined) Object.assign(tag, begun, { marker })
      return { name, marker }
    })
  }

  /** Markers for a load that goes without Redis: those that are known. */
  knownMarkers({ tags }: PendingLoad): TagMarker[] {
    return tags.map((tag) => {
      if (this.redis === undefined) {
        // Nobody else changes it, so it is as well known as if it had been looked up.
        Object.assign(tag, this.begin())
        tag.marker ??= newVersion()
      }
      return { name: tag.name, marker: tag.marker ?? '' }
    })
  }

  /** Keeps what was loaded. @throws PayloadNotEncodable */
  keep(load: PendingLoad, loaded: unknown, lives: Lives, { version, encoded, begun, wanted }: Loaded): Entry {
    const form = encoded === undefined ? 'value' : wanted
    // First, since it refuses what cannot be kept.
    const weight = form === 'value' ? sizeOfValue(loaded) : 0
    const value = withPlainBytes(loaded)
    const uses = this.#usesOf(load.markers)
    const { key, touched: suspect } = load
    // The load may have taken long: what it says is as old as its beginning, but it lives from its end.
    const age = begun.seenAt - performance.now()
    const entry = new Entry({ key, version, age, ...lives, encoded, uses, ...begun, suspect })
    entry.weight += weight
    if (form === 'value') entry.forms.value = Promise.resolve(value)
    else this.renderedIn(entry, form, Promise.resolve(value))
    this.#put(entry, load)
    return entry
  }

  #put(entry: Entry, load: PendingLoad): void {
    if (load.cancelled) this.end(entry)
    else this.memory.put(entry)
  }

  /** @throws PayloadNotDecodable */
  valueIn(entry: Entry): Promise<unknown> {
    entry.forms.value ??= this.#made(entry, 'value', this.#decode(entry), sizeOfValue)
    return entry.forms.value
  }

  /** @throws PayloadNotDecodable, PayloadNotEncodable */
  renderedIn(entry: Entry, form: Format, value = entry.forms.value): Promise<Rendered> {
    entry.forms[form] ??= this.#made(
      entry,
      form,
      (value ?? this.#decode(entry)).then((known) => render(known, form)),
      ({ body }) => ANSWER_OVERHEAD + (body?.length ?? 0),
    )
    return entry.forms[form]
  }

  /** A form that is made weighs; one that cannot be made is forgotten. */
  #made<T>(entry: Entry, form: Wanted, made: Promise<T>, weightOf: (made: T) => number): Promise<T> {
    made.then(
      (known) => this.memory.grow(entry, weightOf(known)),
      () => {
        delete entry.forms[form]
      },
    )
    return made
  }

  #decode({ encoded }: Entry): Promise<unknown> {
    if (encoded === undefined) return Promise.reject(new TypeError('neither value nor bytes'))
    return this.#codec.decode(encoded)
  }

  /** @throws PayloadNotEncodable, PayloadTooLarge, and what Redis throws where structures have to be stored */
  async encode(value: unknown, lives: Lives, tags: readonly TagMarker[]): Promise<StoredValue> {
    sizeOfValue(value)
    const encoded = await this.#codec.encode(value)
    return { ...encoded, ...lives, version: newVersion(), tags, chunks: 0, size: encoded.body.length }
  }

  /** It is never answered again. */
  end(entry: Entry): void {
    entry.over = true
    if (this.memory.peek(entry.key) === entry) this.memory.delete(entry.key)
    else this.#release(entry)
  }

  /** What is in memory is answered no more. */
  forget(key: string): void {
    const entry = this.memory.peek(key)
    if (entry !== undefined) this.end(entry)
  }

  /**
   * The key was invalidated by this process: what was read or loaded of it so far is older.
   * @param own the load that did so goes on
   */
  invalidated(key: string, own?: PendingLoad): void {
    this.forget(key)
    for (const load of this.#loads.get(key) ?? []) if (load !== own) load.cancel()
  }

  /** The tag's marker is not known any more. */
  forgetTag(name: string): void {
    const tag = this.tags.get(name)
    if (tag === undefined) return
    tag.marker = this.redis === undefined ? newVersion() : undefined
    tag.suspect = this.redis !== undefined
  }

  /** The tag was invalidated by this process. */
  invalidatedTag(name: string): void {
    this.forgetTag(name)
    for (const load of this.#allLoads()) if (load.tagNames.includes(name)) load.cancel()
  }

  /** Of a value or tag in Redis. It need not have another value: our own writes are heard too. */
  changed(name: string): void {
    const { key, tag } = this.redis?.keys.parse(name) ?? {}
    if (tag !== undefined) this.#tagChanged(tag)
    if (key === undefined) return
    const entry = this.memory.peek(key)
    if (entry !== undefined) entry.suspect = true
    this.released(key)
  }

  released(key: string): void {
    for (const load of this.#loads.get(key) ?? []) load.touch()
  }

  flushed(): void {
    for (const entry of this.memory.entries()) entry.suspect = true
    for (const tag of this.tags.values()) tag.suspect = true
    for (const load of this.#allLoads()) load.touch()
  }

  #tagChanged(name: string): void {
    const tag = this.tags.get(name)
    if (tag !== undefined) tag.suspect = true
    for (const load of this.#allLoads()) {
      const own = load.markers.find((marker) => marker.name === name)
      if (own === undefined) continue
      const compare = ([now]: readonly string[]) => {
        if (now !== own.marker && load.markers.includes(own)) load.cancel()
      }
      // If Redis cannot be asked, a later reader of the value finds out.
      this.redis?.markers([name]).then(compare, () => undefined)
    }
  }

  *#allLoads(): Generator<PendingLoad> {
    for (const loads of this.#loads.values()) yield* loads
  }

  #release(entry: Entry): void {
    if (entry.released) return
    entry.released = true
    for (const { tag } of entry.uses) this.tags.giveBack(tag)
  }
}

/** Eight random bytes as Latin-1. */
export const newVersion = (): string => randomBytes(VERSION_BYTES).toString('latin1')
