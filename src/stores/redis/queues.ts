/**
 * Which queues there are, and in how many partitions each: the hash `{PREFIX}:queues`, name → partitions. The number is fixed by the
 * process that registers the queue first, since ids and keys are spread by it. `remove` takes queues out of the hash, so `#known` may be
 * out of date. A push to a removed queue stores nothing, and its answer says so (contract/redis/unregister.lua).
 */
import { MillpondError } from '../../values/errors/errors.ts'
import type { Calls } from './connection/calls.ts'
import { scriptOf } from './connection/scripts.ts'
import { Partition } from './partition.ts'
import { chunks } from './per-partition.ts'
import type { Settings } from './settings.ts'
import { numberIn, textIn } from './wire.ts'

/** Most queues that are remembered because of pushes: a producer may push to any number of them, one after another. */
const MAX_KNOWN = 10_000
/** Least ms between two looks into the list of queues, for a queue that has a partition which is not in it. */
const LOOK_PAUSE = 1000

export class Queues {
  readonly #settings: Settings
  readonly #calls: Calls
  readonly #tag: string
  readonly #known = new Map<string, readonly Partition[]>()
  /** When those known were looked at last in the list, because a partition was found not to be listed. */
  readonly #lookedAt = new WeakMap<readonly Partition[], number>()

  constructor(calls: Calls, settings: Settings) {
    this.#calls = calls
    this.#settings = settings
    this.#tag = `{${settings.prefix}}`
  }

  /** The partitions of a queue that this process knows to be there, or to have been, in the order of their indexes. */
  known(name: string): readonly Partition[] | undefined {
    return this.#known.get(name)
  }

  allKnown(): ReadonlyMap<string, readonly Partition[]> {
    return this.#known
  }

  forget(name: string): void {
    this.#known.delete(name)
  }

  /**
   * Registers a queue, which is known then, whatever was known of it before.
   * @returns `floor`: what a push to a partition which is not listed yet must state
   */
  async create(name: string): Promise<{ partitions: readonly Partition[]; floor: number }> {
    const { count, floor } = await this.#register(
      name,
      this.#known.get(name)?.length ?? this.#settings.partitions,
      false,
    )
    const [oldest] = this.#known.keys()
    if (oldest !== undefined && this.#known.size >= MAX_KNOWN) this.#known.delete(oldest)
    return { partitions: this.#learn(name, count), floor }
  }

  /** Registers a partition's queue once more. @throws StoreFailed where it has another number of partitions by now */
  async confirm({ queue, count: expected }: Partition): Promise<void> {
    const { count } = await this.#register(queue, expected, true)
    if (count === expected) return
    this.forget(queue)
    throw new MillpondError('StoreFailed', `the queue ${queue} was split anew meanwhile; repeat the call`, { queue })
  }

  /** @param stored whether something of it is stored already */
  async #register(name: string, partitions: number, stored: boolean): Promise<{ count: number; floor: number }> {
    const [count, floor] = await this.#script('register', name, partitions, stored ? 1 : 0)
    if (count === undefined) throw this.#isNewer()
    return { count: numberIn(count), floor: Number(textIn(floor)) }
  }

  /** To be called before anything else. @throws StoreVersion where the data are of a newer version than the scripts */
  async checkVersion(): Promise<void> {
    const [version, known] = await this.#script('opened')
    if (numberIn(version) > numberIn(known)) throw this.#isNewer()
  }

  #isNewer(): MillpondError {
    const { prefix, where } = this.#settings
    const message =
      `the keys under the prefix ${prefix} of Redis at ${where} were made by a newer version of Millpond: ` +
      'upgrade this one'
    return new MillpondError('StoreVersion', message)
  }

  /**
   * Step 0 of contract/redis/unregister.lua.
   * @returns the floor of fences that are given out from here on, `least` at least; undefined: it is not in the list, or split anew
   */
  async markRemoval(name: string, partitions: number, token: string, least: number): Promise<number | undefined> {
    const [floor] = await this.#script('unregister', name, partitions, token, 0, least)
    return floor === undefined ? undefined : Number(textIn(floor))
  }

  /** Steps 1 and 2: takes the queue out of the list, unless somebody has registered it meanwhile, or leaves it there. */
  async endRemoval(name: string, partitions: number, token: string, isEmpty: boolean): Promise<void> {
    if (isEmpty) this.forget(name)
    await this.#script('unregister', name, partitions, token, isEmpty ? 1 : 2)
  }

  #script(name: 'opened' | 'register' | 'unregister', ...args: (string | number)[]): Promise<readonly unknown[]> {
    return this.#calls.script(name, this.registryOf(name), args)
  }

  /** The keys of a script that are the whole store's. */
  registryOf(script: string): { tag: string; keys: string[] } {
    return { tag: this.#tag, keys: scriptOf(script).keys.map((key) => `${this.#tag}:${key}`) }
  }

  get #registry(): string {
    return `${this.#tag}:queues`
  }

  /** Of a queue that may not be there: then where it would be, for a caller that waits for its first job. */
  async look(name: string): Promise<readonly Partition[]> {
    return this.#known.get(name) ?? (await this.listed(name)) ?? this.#make(name, this.#settings.partitions)
  }

  /** Of a queue if it is in the list. */
  async listed(name: string): Promise<readonly Partition[] | undefined> {
    const count = await this.#calls.command(this.#tag, 'hget', this.#registry, name)
    return count === null ? undefined : this.#learn(name, countIn(count))
  }

  /**
   * After a partition of it was found not to be listed. Looks into the list once a second at most.
   * @returns `split`: it was removed, and split anew since then; `lost`: the server has lost what it knew of it, since
   * no queue was removed, or it is in the list; undefined: neither is known
   */
  async lookAgain(name: string): Promise<'split' | 'lost' | undefined> {
    const known = this.#known.get(name)
    if (known === undefined || performance.now() < (this.#lookedAt.get(known) ?? 0) + LOOK_PAUSE) return undefined
    this.#lookedAt.set(known, performance.now())
    const now = await this.listed(name)
    if (now !== undefined) return now.length === known.length ? 'lost' : 'split'
    const floor = await this.#calls.command(this.#tag, 'get', `${this.#tag}:floor`)
    return floor === null ? 'lost' : undefined
  }

  /** All that are in the list. */
  async all(): Promise<Map<string, readonly Partition[]>> {
    const listed = await this.#calls.command(this.#tag, 'hgetall', this.#registry)
    return new Map(pairsIn(listed).map(([name, count]) => [name, this.#learn(name, countIn(count))]))
  }

  /** A partition that a sweep found, whether or not this process knows its queue. */
  partition(queue: string, index: number): Partition {
    return this.#known.get(queue)?.[index] ?? new Partition(this.#settings.prefix, queue, index)
  }

  #learn(name: string, count: number): readonly Partition[] {
    const known = this.#known.get(name)
    if (known?.length === count) return known
    const made = this.#make(name, count)
    this.#known.set(name, made)
    return made
  }

  #make(name: string, count: number): readonly Partition[] {
    return Array.from({ length: count }, (_, index) => new Partition(this.#settings.prefix, name, index, count))
  }
}

/** Of a hash. Transformers of replies hold for all clients of a process, so it may come in any form. */
function pairsIn(hash: unknown): [string, unknown][] {
  if (hash instanceof Map) return [...hash].map(([name, value]) => [String(name), value])
  if (!Array.isArray(hash)) return Object.entries(hash ?? {})
  return chunks(hash.flat(), 2).map(([name, value]) => [String(name), value])
}

/** A token of a removal may stand behind it. */
const countIn = (value: unknown): number => Number.parseInt(textIn(value), 10)
