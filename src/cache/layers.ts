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
import { isMillpondError, MillpondError } from '../values/errors.ts'
import type { Codec } from './codec.ts'
import { Entry } from './entry.ts'
import { Memory } from './memory.ts'
import { PendingLoad } from './pending-load.ts'
import type { Found, RedisLayer } from './redis-layer.ts'
import { type Form, type Rendered, render } from './rendered.ts'
import type { OnError } from './report.ts'
import { type Encoded, type Lives, type Stored, type TagMarker, VERSION_BYTES } from './stored.ts'
import { Tags } from './tags.ts'
import type { Begun, Changes, Heard, Seen } from './tracker.ts'
import { weigh } from './weigh.ts'

export type Standing = 'fresh' | 'stale' | 'old' | 'unsure' | 'over'
export type Wanted = 'value' | Form

export interface LayerSettings {
  memory: number
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

export class Layers implements Heard {
  readonly redis: RedisLayer | undefined
  readonly memory: Memory
  /** Of the process' loads, by key. */
  readonly loads = new Map<string, Set<PendingLoad>>()
  readonly drift: number
  readonly tags = new Tags()
  readonly onError: OnError
  /** Values that were found in Redis, and those that could not be read. */
  readonly counts = { found: 0, corrupt: 0 }
  readonly #changes: Changes
  readonly #codec: Codec

  constructor(redis: RedisLayer | undefined, changes: Changes, codec: Codec, settings: LayerSettings) {
    this.redis = redis
    this.drift = settings.drift
    this.onError = settings.onError
    this.#changes = changes
    this.#codec = codec
    this.memory = new Memory(settings.memory, (entry) => this.#release(entry))
  }

  /** Whether what others change is heard. */
  get hearing(): boolean {
    return this.#changes.on
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
    const { aliveAt } = this.#changes
    return now - seenAt < this.drift || (epoch === this.#changes.epoch && now - aliveAt < this.drift)
  }

  /** To be taken before a look or load, both at once: a later epoch would vouch for what was missed in between. */
  begin(): Begun {
    return { seenAt: performance.now(), epoch: this.#changes.epoch }
  }

  /** Whether it may be answered while it cannot be had better: nothing that was heard speaks against it. */
  servable(entry: Entry, now: number): boolean {
    if (entry.over || entry.suspect || now >= entry.errorUntil) return false
    return entry.uses.every(({ tag, marker }) => !tag.suspect && (tag.marker ?? marker) === marker)
  }

  /** A load that is told what happens to its key and tags, until it is untracked. Its arguments are those of `PendingLoad`. */
  track(key: string, tags: readonly string[] = [], signal?: AbortSignal, onLast?: () => void): PendingLoad {
    const held = tags.map((name) => this.tags.take(name))
    const load = new PendingLoad(key, held, signal, onLast)
    const others = this.loads.get(key)
    if (others === undefined) this.loads.set(key, new Set([load]))
    else others.add(load)
    return load
  }

  untrack(load: PendingLoad): void {
    const all = this.loads.get(load.key)
    all?.delete(load)
    if (all?.size === 0) this.loads.delete(load.key)
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
    const fetched = this.#entryOf(load, found, begun)
    try {
      return await this.#checked(redis, load, fetched, wanted)
    } catch (error) {
      this.#release(fetched)
      throw error
    }
  }

  #entryOf({ key, touched }: PendingLoad, { stored, age }: Found, begun: Begun): Entry {
    const { version, fresh, stale, error, tags } = stored
    const uses = tags.map(({ name, marker }) => ({ tag: this.tags.take(name), marker }))
    return new Entry({ key, version, age, fresh, stale, error, encoded: stored, uses, ...begun, suspect: touched })
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
      // What this form cannot carry is told to those who want this form.
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
    const unknown = entry.uses
      .map(({ tag }) => tag)
      .filter((tag) => tag.marker === undefined || !this.#isTrusted(tag, performance.now()))
    if (unknown.length > 0) {
      const names = unknown.map(({ name }) => name)
      await this.lookUpMarkers(redis, names)
    }
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
  keep(load: PendingLoad, value: unknown, lives: Lives, { version, encoded, begun, wanted }: Loaded): Entry {
    const form = encoded === undefined ? 'value' : wanted
    // First, since it refuses what cannot be kept.
    const weight = form === 'value' ? weigh(value) : 0
    const uses = load.markers.map(({ name, marker }) => ({ tag: this.tags.take(name), marker }))
    const { key, touched: suspect } = load
    // The load may have taken long: what it says is as old as its beginning, but it lives from its end.
    const age = begun.seenAt - performance.now()
    const entry = new Entry({ key, version, age, ...lives, encoded, uses, ...begun, suspect })
    entry.weight += weight
    const made = Promise.resolve(value)
    if (form === 'value') entry.forms.value = made
    else entry.forms[form] = this.#render(entry, form, made)
    this.#put(entry, load)
    return entry
  }

  #put(entry: Entry, load: PendingLoad): void {
    if (load.cancelled) this.end(entry)
    else this.memory.put(entry)
  }

  /** @throws PayloadNotDecodable */
  valueIn(entry: Entry): Promise<unknown> {
    const ready = entry.forms.value
    if (ready !== undefined) return ready
    const value = this.#decode(entry)
    entry.forms.value = value
    this.#account(entry, 'value', value, weigh)
    return value
  }

  /** @throws PayloadNotDecodable, PayloadNotEncodable */
  renderedIn(entry: Entry, form: Form): Promise<Rendered> {
    const ready = entry.forms[form]
    if (ready !== undefined) return ready
    const rendered = this.#render(entry, form, entry.forms.value ?? this.#decode(entry))
    entry.forms[form] = rendered
    return rendered
  }

  #render(entry: Entry, form: Form, value: Promise<unknown>): Promise<Rendered> {
    const rendered = value.then((known) => render(known, form))
    this.#account(entry, form, rendered, ({ body }) => ANSWER_OVERHEAD + (body?.length ?? 0))
    return rendered
  }

  /** A form that is made weighs; one that cannot be made is forgotten. */
  #account<T>(entry: Entry, form: Wanted, made: Promise<T>, weightOf: (made: T) => number): void {
    made.then(
      (known) => this.memory.grow(entry, weightOf(known)),
      () => {
        delete entry.forms[form]
      },
    )
  }

  #decode({ encoded }: Entry): Promise<unknown> {
    if (encoded === undefined) return Promise.reject(new TypeError('neither value nor bytes'))
    return this.#codec.decode(encoded)
  }

  /** @throws PayloadNotEncodable, PayloadTooLarge, and what Redis throws where structures have to be stored */
  async encode(value: unknown, lives: Lives, tags: readonly TagMarker[]): Promise<Stored> {
    weigh(value)
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

  /** Redis has none, and one is loaded: the one that Redis did not take is not to come back for it, however long that takes. */
  forgetUntaken(key: string): void {
    if (this.memory.peek(key)?.version === '') this.forget(key)
  }

  /**
   * The key was invalidated by this process: what was read or loaded of it so far is older.
   * @param own the load that did so goes on
   */
  invalidated(key: string, own?: PendingLoad): void {
    this.forget(key)
    for (const load of this.loads.get(key) ?? []) if (load !== own) load.cancel()
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
    const { key, tag } = this.redis?.names.parse(name) ?? {}
    if (key !== undefined) {
      const entry = this.memory.peek(key)
      if (entry !== undefined) entry.suspect = true
      this.released(key)
    } else if (tag !== undefined) this.#tagChanged(tag)
  }

  released(key: string): void {
    for (const load of this.loads.get(key) ?? []) load.touch()
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
    for (const loads of this.loads.values()) yield* loads
  }

  #release(entry: Entry): void {
    if (entry.released) return
    entry.released = true
    for (const { tag } of entry.uses) this.tags.giveBack(tag)
  }
}

/** Eight random bytes as Latin-1. */
export const newVersion = (): string => randomBytes(VERSION_BYTES).toString('latin1')
