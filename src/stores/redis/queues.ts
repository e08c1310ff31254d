/**
 * Which queues there are, and in how many partitions each: the hash `{PREFIX}:queues`, name → partitions. The number is fixed by whoever
 * registers the queue first, since ids and keys are spread by it. Queues that nobody uses are removed from it (remove.ts), so what is known
 * here may be out of date: a push to a queue that has been removed stores nothing, and says so (push.ts).
 */
import { MillpondError } from '../../errors.ts'
import { hash } from './ids.ts'
import type { Link } from './link.ts'
import { Partition } from './partition.ts'
import type { Settings } from './settings.ts'
import { settled, type Trouble } from './settled.ts'
import { numberIn, textIn } from './wire.ts'

/** Queues that are known at once without having been seen in the list of all: a producer may push to any number, one after the other. */
const MOST_KNOWN = 10_000

export class Queues {
  readonly #settings: Settings
  readonly #link: Link
  readonly #tag: string
  readonly #known = new Map<string, readonly Partition[]>()
  readonly #creating = new Map<string, Promise<readonly Partition[]>>()

  constructor(link: Link, settings: Settings) {
    this.#link = link
    this.#settings = settings
    this.#tag = `{${settings.prefix}}`
  }

  /** Of a queue that this process knows to be there, or to have been. */
  known(name: string): readonly Partition[] | undefined {
    return this.#known.get(name)
  }

  forget(name: string): void {
    this.#known.delete(name)
  }

  /** Of a queue that is to come into being if it isn't there: registered anew, whatever is known. Pushes state its `floor`. */
  create(name: string): Promise<readonly Partition[]> {
    let creating = this.#creating.get(name)
    if (creating === undefined) {
      creating = this.#create(name).finally(() => this.#creating.delete(name))
      this.#creating.set(name, creating)
    }
    return creating
  }

  async #create(name: string): Promise<readonly Partition[]> {
    const { count, floor } = await this.#register(name, this.#known.get(name)?.length ?? this.#settings.partitions)
    if (this.#known.size >= MOST_KNOWN) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    const partitions = this.#learn(name, count)
    for (const partition of partitions) partition.registered(floor)
    return partitions
  }

  /** After something was stored in a partition that is not listed yet: makes sure that the queue is in the list, whoever was about to remove it. */
  async register({ queue, count: expected }: Partition): Promise<void> {
    const { count } = await this.#register(queue, expected)
    if (count === expected) return
    this.forget(queue)
    throw new MillpondError('StoreFailed', `the queue ${queue} was split anew meanwhile; repeat the call`, { queue })
  }

  async #register(name: string, partitions: number): Promise<{ count: number; floor: number }> {
    const [count, floor] = await this.#ask('register', name, partitions)
    return { count: numberIn(count), floor: Number(textIn(floor)) }
  }

  /** The first step of removing a queue. @returns the floor for its partitions; null: leave it */
  async unregister(name: string, partitions: number, token: string): Promise<number | null> {
    const [floor] = await this.#ask('unregister', name, partitions, token, 0)
    return floor === undefined ? null : Number(textIn(floor))
  }

  /** The last step. @param removed all its partitions are */
  async unregistered(name: string, partitions: number, token: string, removed: boolean): Promise<void> {
    await this.#ask('unregister', name, partitions, token, removed ? 1 : 2)
  }

  #ask(script: 'register' | 'unregister', ...args: (string | number)[]): Promise<readonly unknown[]> {
    const target = { tag: this.#tag, keys: [this.#registry, `${this.#tag}:floor`] }
    return this.#link.call(script, target, args)
  }

  get #registry(): string {
    return `${this.#tag}:queues`
  }

  /** Of a queue that may not be there: then where it would be, for whoever waits for its first job. */
  async look(name: string): Promise<readonly Partition[]> {
    return this.#known.get(name) ?? (await this.registered(name)) ?? this.#make(name, this.#settings.partitions)
  }

  /** Of a queue if it is in the list. */
  async registered(name: string): Promise<readonly Partition[] | undefined> {
    const count = await this.#link.command((client) => client.hget(this.#registry, name))
    return count === null ? undefined : this.#learn(name, Number.parseInt(count, 10))
  }

  /** How many are in the list. */
  count(): Promise<number> {
    return this.#link.command((client) => client.hlen(this.#registry))
  }

  /** The names of those that this process knows, and that are not in the list: they were removed, or lost with a failover. */
  async unlisted(): Promise<string[]> {
    const registered = await this.#link.command((client) => client.hkeys(this.#registry))
    const listed = new Set(registered)
    return [...this.#known.keys()].filter((name) => !listed.has(name))
  }

  get knownCount(): number {
    return this.#known.size
  }

  /** The partitions of all that are in the list. */
  async all(): Promise<Partition[]> {
    const registered = await this.#link.command((client) => client.hgetall(this.#registry))
    return Object.entries(registered).flatMap(([name, count]) => this.#learn(name, Number.parseInt(count, 10)))
  }

  /** All that there are; where the list itself cannot be reached, those that this process knows, and why there may be more. */
  async reachable(): Promise<{ partitions: Partition[]; failure: Trouble | undefined }> {
    const { replies, failure } = await settled([this.all()])
    return { partitions: replies[0] ?? this.allKnown(), failure }
  }

  allKnown(): Partition[] {
    return [...this.#known.values()].flat()
  }

  /** A part that a sweep found, whether or not this process knows its queue. */
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

/** Where a job of this id, or of this key if it has one, is kept. A queue's partitions are in the order of their indexes. */
export function indexOf(partitions: readonly Partition[], id: string, key: string | null): number {
  return partitions.length === 1 ? 0 : hash(key ?? id) % partitions.length
}
