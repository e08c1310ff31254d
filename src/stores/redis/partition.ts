/**
 * Where a part of a queue lives. Its keys have the hash tag of a bucket, of which each store has `BUCKETS`: so a store's queues lie in that many
 * slots of a cluster, and what concerns all parts of a bucket, such as when the next sweep is due, can be kept in one place.
 */
import { hash } from './ids.ts'
import { type ScriptName, scriptOf } from './scripts.ts'

/** Ms for which a queue that was registered is taken to be there: much less than it takes to remove one. */
const BELIEVED = 10_000

/** Part of the layout. */
export const BUCKETS = 64

export const tagOf = (prefix: string, bucket: number): string => `{${prefix}:${bucket}}`

/** "#" cannot be in a queue's name, so no two parts are the same. */
const partOf = (queue: string, index: number): string => (index === 0 ? queue : `${queue}#${index}`)

/** The queue and the index of a part. */
export function parsedPart(part: string): { queue: string; index: number } {
  const at = part.indexOf('#')
  return at < 0 ? { queue: part, index: 0 } : { queue: part.slice(0, at), index: Number(part.slice(at + 1)) }
}

/** A queue's partitions lie in buckets one after another. */
export const bucketOf = (queue: string, index: number): number => (hash(queue) + index) % BUCKETS

export class Partition {
  readonly queue: string
  readonly index: number
  readonly bucket: number
  readonly tag: string
  /** Among all under its tag. */
  readonly part: string
  /** How many the queue has. */
  readonly count: number
  /** Until when pushes state it, by `performance.now()`. */
  #registered: { floor: number; until: number } | null = null
  readonly #keys = new Map<ScriptName, readonly string[]>()
  /** Each key once, however many scripts have it: there may be thousands of partitions. */
  readonly #names = new Map<string, string>()

  constructor(prefix: string, queue: string, index: number, count = 1) {
    this.queue = queue
    this.index = index
    this.bucket = bucketOf(queue, index)
    this.tag = tagOf(prefix, this.bucket)
    this.part = partOf(queue, index)
    this.count = count
  }

  /** What pushes state shortly after the queue was registered, until the partition is known to be listed (contract/redis/push.lua); else null. */
  get floor(): number | null {
    return this.#registered !== null && performance.now() < this.#registered.until ? this.#registered.floor : null
  }

  registered(floor: number): void {
    this.#registered = { floor, until: performance.now() + BELIEVED }
  }

  listed(): void {
    this.#registered = null
  }

  key(name: string): string {
    let key = this.#names.get(name)
    if (key === undefined) {
      key = name.startsWith('@') ? `${this.tag}:${name.slice(1)}` : `${this.tag}:${this.part}:${name}`
      this.#names.set(name, key)
    }
    return key
  }

  keys(script: ScriptName): readonly string[] {
    let keys = this.#keys.get(script)
    if (keys === undefined) {
      keys = scriptOf(script).keys.map((name) => this.key(name))
      this.#keys.set(script, keys)
    }
    return keys
  }
}
