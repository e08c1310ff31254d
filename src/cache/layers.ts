/**
 * The process' memory and Redis as one: what is known of a key, and how sure that is.
 *
 *   fresh   good, and nothing says that it has changed
 *   stale   its `ttl` is over, but not its `stale`
 *   old     both are over
 *   unsure  Redis has to be asked: it may have changed, or too long nothing was heard
 *   over    invalidated
 */
import { randomBytes } from 'node:crypto'
import { isMillpondError, MillpondError } from '../errors.ts'
import type { Codec } from './codec.ts'
import { Entry } from './entry.ts'
import { type Flying, Sky, type TagMarker } from './flying.ts'
import { Memory } from './memory.ts'
import type { Found, RedisSide } from './redis.ts'
import { type Form, type Rendered, render } from './rendered.ts'
import { type Encoded, type Lives, type Stored, VERSION_BYTES } from './stored.ts'
import { type Tag, Tags } from './tags.ts'
import { type Begun, Trust, type Watch } from './watch.ts'
import { weigh } from './weigh.ts'

export type Standing = 'fresh' | 'stale' | 'old' | 'unsure' | 'over'
export type Wanted = 'value' | Form

export interface LayerSettings {
  memory: number
  drift: number
  onTrouble: (error: MillpondError, key: string) => void
}

export interface Looked {
  entry?: Entry
  /** The version that is in Redis; undefined: nothing is there; null: something that is not ours. */
  seen: string | undefined | null
}

export class Layers {
  readonly redis: RedisSide | undefined
  readonly memory: Memory
  readonly sky = new Sky()
  readonly drift: number
  readonly tags = new Tags()
  readonly #trust: Trust
  readonly #codec: Codec
  readonly #onTrouble: (error: MillpondError, key: string) => void
  /** Values that were found in Redis, and those that could not be read. */
  readonly counts = { found: 0, corrupt: 0 }

  constructor(redis: RedisSide | undefined, watch: Watch, codec: Codec, settings: LayerSettings) {
    this.redis = redis
    this.drift = settings.drift
    this.#trust = new Trust(watch, settings.drift)
    this.#codec = codec
    this.#onTrouble = settings.onTrouble
    this.memory = new Memory(settings.memory, (entry) => this.#release(entry))
  }

  standing(entry: Entry, now: number): Standing {
    if (entry.over) return 'over'
    // Who invalidates what is not in Redis changes nothing there, so nothing is heard of it.
    if (this.redis !== undefined && entry.version === '' && now - entry.seenAt >= this.drift) return 'unsure'
    if (!this.#trust.holds(entry, now)) return 'unsure'
    if (entry.uses.length > 0) {
      const tagged = entry.tagged(({ tag }) => tag.marker !== undefined && this.#trust.holds(tag, now))
      if (tagged !== true) return tagged === false ? 'over' : 'unsure'
    }
    return age(entry, now)
  }

  /** To be taken before a load, and kept with what it brings. */
  begin(): Begun {
    return this.#trust.begin()
  }

  /** Whether it may be answered while it cannot be had better: nothing that was heard speaks against it. */
  servable(entry: Entry, now: number): boolean {
    if (entry.over || entry.suspect || now >= entry.errorUntil) return false
    return entry.uses.every(({ tag, marker }) => !tag.suspect && (tag.marker ?? marker) === marker)
  }

  /**
   * What is in Redis; from memory, if that is the same.
   * @param wanted is made of it, so that what cannot be read is found out
   * @throws StoreUnavailable and others of the store
   */
  async look(redis: RedisSide, flying: Flying, wanted: Wanted): Promise<Looked> {
    const { key } = flying
    const seen = this.#trust.begin()
    const known = this.memory.peek(key)
    if (known !== undefined && known.version !== '' && !known.over) {
      const there = await redis.check(key)
      if (there?.version === known.version && !known.over) {
        Object.assign(known, seen, { suspect: flying.touched })
        this.counts.found++
        return this.#tagged(redis, known)
      }
      if (there === undefined) {
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
    if ('reason' in found) return this.#spoilt(key, found.reason, null)
    const fetched = this.#entryOf(flying, found, seen)
    try {
      return await this.#checked(redis, flying, fetched, wanted)
    } catch (error) {
      this.#release(fetched)
      throw error
    }
  }

  /** What was fetched, if it can be read and its tags' markers are still the same: then it is kept. */
  async #checked(redis: RedisSide, flying: Flying, fetched: Entry, wanted: Wanted): Promise<Looked> {
    const looked = await this.#tagged(redis, fetched)
    const { entry } = looked
    if (entry === undefined) return looked
    try {
      await (wanted === 'value' ? this.valueIn(entry) : this.renderedIn(entry, wanted))
    } catch (error) {
      // What this form cannot carry is told to those who want this form.
      if (isMillpondError(error, 'PayloadNotDecodable')) {
        this.end(entry)
        return this.#spoilt(flying.key, error.message, entry.version)
      }
      if (!isMillpondError(error, 'PayloadNotEncodable')) throw error
    }
    this.counts.found++
    // What was heard while it was fetched and read is about it as well.
    entry.suspect ||= flying.touched
    if (flying.cancelled) this.end(entry)
    else this.memory.put(entry)
    return looked
  }

  #entryOf(flying: Flying, { stored, age: since }: Found, seen: Begun): Entry {
    const { version, fresh, stale, error } = stored
    const uses = stored.tags.map(({ name, version: marker }) => ({ tag: this.tags.take(name), marker }))
    const lives = { fresh, stale, error }
    return new Entry({
      key: flying.key,
      version,
      age: since,
      ...lives,
      encoded: stored,
      uses,
      ...seen,
      suspect: flying.touched,
    })
  }

  #spoilt(key: string, reason: string, seen: string | null): Looked {
    this.counts.corrupt++
    const message = `what Redis has for the key cannot be read, which counts as nothing being there: ${reason}`
    this.#onTrouble(new MillpondError('PayloadNotDecodable', message), key)
    return { seen }
  }

  /** Finds out the markers that are not known. */
  async #tagged(redis: RedisSide, entry: Entry): Promise<Looked> {
    const unknown = entry.uses.filter(
      ({ tag }) => tag.marker === undefined || !this.#trust.holds(tag, performance.now()),
    )
    if (unknown.length > 0)
      await this.learn(
        redis,
        unknown.map(({ tag }) => tag.name),
      )
    if (entry.tagged(({ tag }) => tag.marker !== undefined) === true) return { entry, seen: entry.version }
    this.end(entry)
    return { seen: entry.version }
  }

  /** The tags' markers as they are in Redis now. */
  async learn(redis: RedisSide, names: readonly string[]): Promise<TagMarker[]> {
    const seen = this.#trust.begin()
    for (const name of names) {
      const tag = this.tags.get(name)
      if (tag !== undefined) tag.suspect = false
    }
    const markers = await redis.markers(names)
    return names.map((name, index) => {
      const marker = markers[index] ?? ''
      const tag = this.tags.get(name)
      // What was heard in between is newer than the answer.
      if (tag !== undefined) Object.assign(tag, seen, { marker })
      return { name, marker }
    })
  }

  /** The tags are known while a load is on its way, so that what is heard of them is not lost. To be let go. */
  hold(names: readonly string[]): readonly Tag[] {
    return names.map((name) => this.tags.take(name))
  }

  letGo(tags: readonly Tag[]): void {
    for (const tag of tags) this.tags.giveBack(tag)
  }

  /** Markers for a load that goes without Redis: those that are known. */
  assumed(tags: readonly Tag[]): TagMarker[] {
    return tags.map((tag) => {
      if (this.redis === undefined) {
        // Nobody else changes it, so it is as well known as if it had been looked up.
        Object.assign(tag, this.#trust.begin())
        tag.marker ??= newVersion()
      }
      return { name: tag.name, marker: tag.marker ?? '' }
    })
  }

  /**
   * Keeps what was loaded.
   * @param begun when the load began
   * @param encoded as it is in Redis; without it the value itself has to be kept
   */
  keep(
    flying: Flying,
    value: unknown,
    lives: Lives,
    {
      version,
      encoded,
      begun,
      wanted,
    }: { version: string; encoded: Encoded | undefined; begun: Begun; wanted: Wanted },
  ): Entry {
    const form = encoded === undefined ? 'value' : wanted
    // First, since it refuses what cannot be kept.
    const weight = form === 'value' ? weigh(value) : 0
    const uses = flying.markers.map(({ name, marker }) => ({ tag: this.tags.take(name), marker }))
    const { key, touched: suspect } = flying
    // The load may have taken long: what it says is as old as its beginning, but it lives from its end.
    const age = begun.seenAt - performance.now()
    const entry = new Entry({ key, version, age, ...lives, encoded, uses, ...begun, suspect })
    entry.weight += weight
    if (form === 'value') entry.forms.value = Promise.resolve(value)
    else entry.forms[form] = this.#made(entry, form, Promise.resolve(value))
    if (flying.cancelled) this.end(entry)
    else this.memory.put(entry)
    return entry
  }

  /** @throws PayloadNotDecodable */
  valueIn(entry: Entry): Promise<unknown> {
    let { value } = entry.forms
    if (value === undefined) {
      value = this.#decoded(entry)
      entry.forms.value = value
      value.then(
        (known) => this.memory.grow(entry, weigh(known)),
        () => {
          delete entry.forms.value
        },
      )
    }
    return value
  }

  /** @throws PayloadNotDecodable, PayloadNotEncodable */
  renderedIn(entry: Entry, form: Form): Promise<Rendered> {
    const ready = entry.forms[form]
    if (ready !== undefined) return ready
    const made = this.#made(entry, form, entry.forms.value ?? this.#decoded(entry))
    entry.forms[form] = made
    return made
  }

  #made(entry: Entry, form: Form, value: Promise<unknown>): Promise<Rendered> {
    const made = value.then((known) => render(known, form))
    made.then(
      ({ body }) => this.memory.grow(entry, 500 + (body?.length ?? 0)),
      () => {
        delete entry.forms[form]
      },
    )
    return made
  }

  #decoded({ encoded }: Entry): Promise<unknown> {
    if (encoded === undefined) return Promise.reject(new TypeError('neither value nor bytes'))
    return this.#codec.decode(encoded)
  }

  /** @throws PayloadNotEncodable, PayloadTooLarge, and what Redis throws where structures have to be stored */
  async encode(value: unknown, lives: Lives, markers: readonly TagMarker[]): Promise<Stored> {
    weigh(value)
    const encoded = await this.#codec.encode(value)
    const tags = markers.map(({ name, marker }) => ({ name, version: marker }))
    return { ...encoded, ...lives, version: newVersion(), tags, pieces: 0, size: encoded.body.length }
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
    const entry = this.memory.peek(key)
    if (entry?.version === '') this.end(entry)
  }

  /** The key was invalidated by this process: what was read or loaded of it so far is of before. */
  invalidated(key: string): void {
    this.forget(key)
    for (const flying of this.sky.of(key)) flying.cancel()
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
    for (const flying of this.sky.all()) if (flying.tags.includes(name)) flying.cancel()
  }

  /** Something was heard of the key. It need not have changed: our own writes are heard too. */
  suspect(key: string): void {
    const entry = this.memory.peek(key)
    if (entry !== undefined) entry.suspect = true
    for (const flying of this.sky.of(key)) flying.touch()
  }

  suspectTag(name: string): void {
    const tag: Tag | undefined = this.tags.get(name)
    if (tag !== undefined) tag.suspect = true
    const { redis } = this
    if (redis === undefined) return
    for (const flying of this.sky.all()) {
      const own = flying.markers.find((marker) => marker.name === name)
      if (own === undefined) continue
      // If Redis cannot be asked, whoever reads the value later can.
      const compare = ([now]: readonly string[]) => {
        if (now !== own.marker && flying.markers.includes(own)) flying.cancel()
      }
      redis.markers([name]).then(compare, () => undefined)
    }
  }

  suspectAll(): void {
    for (const entry of this.memory.entries()) entry.suspect = true
    this.tags.suspectAll()
    for (const flying of this.sky.all()) flying.touch()
  }

  #release(entry: Entry): void {
    if (entry.released) return
    entry.released = true
    this.letGo(entry.uses.map(({ tag }) => tag))
  }
}

/** Eight random bytes as Latin-1. */
export const newVersion = (): string => randomBytes(VERSION_BYTES).toString('latin1')

export function age(entry: Entry, now: number): 'fresh' | 'stale' | 'old' {
  return now < entry.freshUntil ? 'fresh' : now < entry.staleUntil ? 'stale' : 'old'
}
