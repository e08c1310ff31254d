/**
 * Which queues there are, and in how many partitions each: the hash `{PREFIX}:queues`, name → partitions. The number is fixed by whoever
 * registers the queue first, since ids and keys are spread by it. Queues that nobody uses are removed from it (remove.ts), so what is known
 * here may be out of date: a push to a queue that has been removed stores nothing, and says so (push.ts).
 */
import { MillpondError } from '../../errors.ts'
import { hash } from './ids.ts'
import { begun, type Input } from './inputs.ts'
import type { Link } from './link.ts'
import { Partition, type Ringer, tagOf } from './partition.ts'
import { Reader } from './reader.ts'
import type { ScriptName } from './scripts.ts'
import type { Settings } from './settings.ts'
import { settled, type Trouble } from './settled.ts'

/** Queues that are known at once without having been seen in the list of all: a producer may push to any number, one after the other. */
const MOST_KNOWN = 10_000

export interface AllQueues {
  /** The partitions of those in the list. */
  registered: Partition[]
  /** Those that this process knows besides: they were removed, or lost with a failover. */
  others: Partition[]
}

export class Queues {
  readonly channel: string
  readonly #settings: Settings
  readonly #link: Link
  readonly #ringer: Ringer
  /** The keys of the list itself. */
  readonly #list: Partition
  readonly #known = new Map<string, readonly Partition[]>()
  readonly #creating = new Map<string, Promise<readonly Partition[]>>()

  constructor(link: Link, settings: Settings, origin: string) {
    this.#link = link
    this.#settings = settings
    this.channel = `{${settings.prefix}}:bells`
    this.#ringer = { channel: this.channel, origin }
    this.#list = new Partition(`{${settings.prefix}}`, { queue: '', index: 0, count: 1 }, this.#ringer)
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
    const known = this.#known.get(name)?.length
    const { count, floor } = await this.#register(name, known ?? this.#settings.partitions)
    if (this.#known.size >= MOST_KNOWN) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    return this.#learn(name, count, floor)
  }

  /** After something was stored in a partition that is not listed yet: makes sure that the queue is in the list, whoever was about to remove it. */
  async list(partition: Partition): Promise<void> {
    const { queue } = partition
    const { count } = await this.#register(queue, partition.count)
    if (count !== partition.count) {
      this.forget(queue)
      throw new MillpondError('StoreFailed', `the queue ${queue} was split anew meanwhile; repeat the call`, { queue })
    }
    await this.#link.call('listed', partition, begun(null, partition, 2, () => undefined).bytes)
    partition.listed()
  }

  async #register(name: string, partitions: number): Promise<{ count: number; floor: number }> {
    const reader = new Reader(await this.#ask('register', name, partitions))
    reader.list()
    return { count: reader.number(), floor: reader.number() }
  }

  /** The first step of removing a queue. @returns the floor for its partitions; null: leave it */
  async unregister(name: string, partitions: number, token: string): Promise<number | null> {
    return new Reader(await this.#ask('unregister', name, partitions, token, 0)).numberOrFalse()
  }

  /** The last step. @param removed all its partitions are */
  async unregistered(name: string, partitions: number, token: string, removed: boolean): Promise<void> {
    await this.#ask('unregister', name, partitions, token, removed ? 1 : 2)
  }

  #ask(script: ScriptName, name: string, partitions: number, token?: string, step = 0): Promise<Buffer> {
    const input: Input = begun(null, this.#list, token === undefined ? 4 : 6, (packer) => {
      packer.text(name)
      packer.number(partitions)
      if (token === undefined) return
      packer.text(token)
      packer.number(step)
    })
    return this.#link.call(script, this.#list, input.bytes)
  }

  /** Of a queue that may not be there: then where it would be, for whoever waits for its first job. */
  async look(name: string): Promise<readonly Partition[]> {
    return this.#known.get(name) ?? (await this.registered(name)) ?? this.#make(name, this.#settings.partitions)
  }

  /** Of a queue if it is in the list. */
  async registered(name: string): Promise<readonly Partition[] | undefined> {
    const count = await this.#link.command((client) => client.hget(this.#list.keys('register')[0] ?? '', name))
    return count === null ? undefined : this.#learn(name, Number.parseInt(count, 10))
  }

  async all(): Promise<AllQueues> {
    const registered = await this.#link.command((client) => client.hgetall(this.#list.keys('register')[0] ?? ''))
    const listed = Object.entries(registered).map(([name, count]) => this.#learn(name, Number.parseInt(count, 10)))
    const others = [...this.#known].filter(([name]) => !Object.hasOwn(registered, name))
    return { registered: listed.flat(), others: others.flatMap(([, partitions]) => partitions) }
  }

  /** All that there are; where the list itself cannot be reached, those that this process knows, and why there may be more. */
  async reachable(): Promise<AllQueues & { failure: Trouble | undefined }> {
    const { replies, failure } = await settled([this.all()])
    return { ...(replies[0] ?? { registered: this.allKnown(), others: [] }), failure }
  }

  allKnown(): Partition[] {
    return [...this.#known.values()].flat()
  }

  #learn(name: string, count: number, floor: number | null = null): readonly Partition[] {
    const known = this.#known.get(name)
    if (known?.length === count) return known
    const made = this.#make(name, count, floor)
    this.#known.set(name, made)
    return made
  }

  #make(name: string, count: number, floor: number | null = null): readonly Partition[] {
    const { prefix } = this.#settings
    return Array.from(
      { length: count },
      (_, index) => new Partition(tagOf(prefix, name, index), { queue: name, index, count }, this.#ringer, floor),
    )
  }
}

/** Where a job of this id, or of this key if it has one, is kept. A queue's partitions are in the order of their indexes. */
export function indexOf(partitions: readonly Partition[], id: string, key: string | null): number {
  return partitions.length === 1 ? 0 : hash(key ?? id) % partitions.length
}
