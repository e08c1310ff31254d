/** Where a part of a queue lives: keys under one hash tag, and so in one slot of a cluster. Most queues have one part. */
import { Packer } from './packer.ts'
import { type ScriptName, scriptOf } from './scripts.ts'

/** The hash tag of a queue's part. Neither "#" nor ":" can be in a prefix, nor "#" in a queue's name, so no two tags are the same. */
export function tagOf(prefix: string, queue: string, index: number): string {
  return index === 0 ? `{${prefix}:${queue}}` : `{${prefix}:${queue}#${index}}`
}

/** Ms for which a queue that was registered is taken to be there: much less than it takes to remove one. */
const BELIEVED = 10_000

/** One for all. */
const packer = new Packer()

/** Who rings, and where. */
export interface Ringer {
  channel: string
  /** Names this process's store. */
  origin: string
}

export class Partition {
  readonly queue: string
  readonly index: number
  /** How many the queue has. */
  readonly count: number
  readonly tag: string
  /** How each call begins that does not bring a time of its own: [false, bell, …, without the head of the list. */
  readonly bell: Buffer
  /** Until when pushes state it, by `performance.now()`. */
  #registered: { floor: number; until: number } | null
  readonly #keys = new Map<ScriptName, readonly string[]>()
  /** Each key once, however many scripts have it: there may be thousands of partitions. */
  readonly #names = new Map<string, string>()

  constructor(
    tag: string,
    { queue, index, count }: { queue: string; index: number; count: number },
    { channel, origin }: Ringer,
    floor: number | null = null,
  ) {
    this.queue = queue
    this.index = index
    this.count = count
    this.tag = tag
    this.#registered = floor === null ? null : { floor, until: performance.now() + BELIEVED }
    packer.list(3)
    packer.text(channel)
    packer.nested(() => {
      packer.text(origin)
      packer.text(queue)
    })
    packer.text(origin)
    // A copy, since the packer's own buffer would be kept for it.
    this.bell = Buffer.from(packer.take())
  }

  /** What pushes state shortly after the queue was registered, until the partition is known to be listed (contract/redis/push.lua); else null. */
  get floor(): number | null {
    return this.#registered !== null && performance.now() < this.#registered.until ? this.#registered.floor : null
  }

  listed(): void {
    this.#registered = null
  }

  keys(name: ScriptName): readonly string[] {
    let keys = this.#keys.get(name)
    if (keys === undefined) {
      keys = scriptOf(name).keys.map((key) => this.#name(key))
      this.#keys.set(name, keys)
    }
    return keys
  }

  #name(key: string): string {
    const name = this.#names.get(key) ?? `${this.tag}:${key}`
    this.#names.set(key, name)
    return name
  }
}
