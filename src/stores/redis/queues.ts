/**
 * Which queues there are, and in how many partitions each: the hash `{PREFIX}:queues`, name → partitions. The number is fixed by whoever
 * names the queue first, since ids and keys are spread by it. Entries are only ever added, so what was read once stays true.
 */
import { hash } from './ids.ts'
import type { Link } from './link.ts'
import { Partition } from './partition.ts'
import type { Settings } from './settings.ts'
import { settled, type Trouble } from './settled.ts'

export class Queues {
  readonly #registry: string
  readonly #settings: Settings
  readonly #link: Link
  readonly #known = new Map<string, readonly Partition[]>()
  readonly #registering = new Map<string, Promise<readonly Partition[]>>()

  constructor(link: Link, settings: Settings) {
    this.#link = link
    this.#settings = settings
    this.#registry = `{${settings.prefix}}:queues`
  }

  /** Of a queue that this process knows to be there. */
  known(name: string): readonly Partition[] | undefined {
    return this.#known.get(name)
  }

  /** Of a queue that is to come into being if it isn't there. */
  create(name: string): Promise<readonly Partition[]> {
    const known = this.#known.get(name)
    if (known !== undefined) return Promise.resolve(known)
    let registering = this.#registering.get(name)
    if (registering === undefined) {
      registering = this.#register(name).finally(() => this.#registering.delete(name))
      this.#registering.set(name, registering)
    }
    return registering
  }

  async #register(name: string): Promise<readonly Partition[]> {
    const { partitions } = this.#settings
    const count = await this.#link.command(async (client) => {
      // Read first: a server without room refuses even a write that would change nothing.
      const there = await client.hget(this.#registry, name)
      if (there !== null) return there
      await client.hsetnx(this.#registry, name, partitions)
      return client.hget(this.#registry, name)
    })
    return this.#learn(name, Number(count))
  }

  /** Of a queue that may not be there: then where it would be, for whoever waits for its first job. */
  async look(name: string): Promise<readonly Partition[]> {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const count = await this.#link.command((client) => client.hget(this.#registry, name))
    return count === null ? this.#make(name, this.#settings.partitions) : this.#learn(name, Number(count))
  }

  /** Puts a queue back that the registry has lost, in a failover or because all was removed. */
  async restore(name: string): Promise<void> {
    const known = this.#known.get(name)
    if (known !== undefined) await this.#link.command((client) => client.hsetnx(this.#registry, name, known.length))
  }

  /** All there are now. A registry that lost some gets them back. */
  async all(): Promise<Partition[]> {
    const registered = await this.#link.command((client) => client.hgetall(this.#registry))
    for (const [name, count] of Object.entries(registered)) this.#learn(name, Number(count))
    for (const name of this.#known.keys()) if (!Object.hasOwn(registered, name)) await this.restore(name)
    return this.allKnown()
  }

  /** All there are now; where the registry itself cannot be reached, those that this process knows, and why there may be more. */
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
    if (known !== undefined) return known
    const made = this.#make(name, count)
    this.#known.set(name, made)
    return made
  }

  #make(name: string, count: number): readonly Partition[] {
    return Array.from({ length: count }, (_, index) => new Partition(this.#settings.prefix, name, index))
  }
}

/** Where a job of this id, or of this key if it has one, is kept. A queue's partitions are in the order of their indexes. */
export function indexOf(partitions: readonly Partition[], id: string, key: string | null): number {
  return partitions.length === 1 ? 0 : hash(key ?? id) % partitions.length
}
