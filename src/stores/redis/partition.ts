/**
 * Where a partition of a queue lives: contract/redis/README.md, "Routing". Its keys have the hash tag of a bucket, of which each store has
 * `BUCKETS`. So a store's queues lie in that many hash slots of a cluster, and what concerns all partitions of a bucket can be kept in one
 * place.
 */

import { MillpondError } from '../../values/errors/errors.ts'
import { ID_BYTES, idTexts } from './wire.ts'

/** Part of the layout. */
export const BUCKETS = 64

/** Spreads ids, keys and queues: 32-bit FNV-1a over the bytes in UTF-8. */
export function hash(text: string): number {
  let sum = 0x811c9dc5
  for (const byte of Buffer.from(text)) sum = Math.imul(sum ^ byte, 0x01000193)
  return sum >>> 0
}

/** What says where a job lies. */
export interface Routed {
  id: string
  key: string | null
  group: string | null
}

/** Which of a queue's partitions keeps a job: all jobs of a group are in one, and all of a key. */
export const indexOf = (count: number, { id, key, group }: Routed): number =>
  count === 1 ? 0 : hash(group ?? key ?? id) % count

/** Which of a queue's partitions keeps the jobs of a group. */
export const groupIndex = (count: number, group: string): number => (count === 1 ? 0 : hash(group) % count)

export const tagOf = (prefix: string, bucket: number): string => `{${prefix}:${bucket}}`

/** A queue's partitions lie in buckets one after another. */
const bucketOf = (queue: string, index: number): number => (hash(queue) + index) % BUCKETS

/** The queue, and the index of its partition, by the name of the part: `QUEUE#INDEX`. A queue's name has no "#". */
export function parsedPart(part: string): { queue: string; index: number } {
  const [queue = '', index = '0'] = part.split('#')
  return { queue, index: Number(index) }
}

export class Partition {
  readonly queue: string
  readonly index: number
  readonly bucket: number
  readonly tag: string
  /** Names it among all partitions of its bucket. */
  readonly part: string
  /** How many the queue has. */
  readonly count: number
  /** Its server's time minus `performance.now()`, at least; null: not known, or the time is a test's. */
  serverAhead: number | null = null
  /** It did not answer of late. Claims leave it out until it answers. */
  away = false
  /** Why, once that is known. The next claim that finds nothing tells it. */
  trouble: { reason: unknown } | undefined

  constructor(prefix: string, queue: string, index: number, count = 1) {
    this.queue = queue
    this.index = index
    this.bucket = bucketOf(queue, index)
    this.tag = tagOf(prefix, this.bucket)
    this.part = index === 0 ? queue : `${queue}#${index}`
    this.count = count
  }

  /**
   * Its part of a number that holds for the whole queue. The shares differ by one at most. @throws InvalidOption where some partition would
   * have none
   */
  shareOf(total: number, name: string): number {
    const { queue, count } = this
    if (total < count) {
      const message = `${name} must be at least ${count}, as the queue ${queue} is split into ${count} partitions and each has its share`
      throw new MillpondError('InvalidOption', message, { queue })
    }
    return Math.floor((total + count - 1 - this.index) / count)
  }

  key(name: string): string {
    return name.startsWith('@') ? `${this.tag}:${name.slice(1)}` : `${this.tag}:${this.part}:${name}`
  }
}

interface PushedJobs {
  count: number
  /** The ids of each call, one after the other. */
  calls: { partition: Partition; ids: Buffer }[]
  byId: Map<string, Partition>
}

/**
 * The partitions of the jobs that were pushed last. Calls are sorted by id only when one is asked for: a producer that never asks has no
 * cost.
 */
export class Locations {
  /** When the last ones are half of those that may be remembered, they become the ones before, which are forgotten. */
  #last: PushedJobs = { count: 0, calls: [], byId: new Map() }
  #before: PushedJobs | undefined

  remember(partition: Partition, ids: Buffer): void {
    this.#last.calls.push({ partition, ids })
    this.#last.count += ids.length / ID_BYTES
    if (this.#last.count < 5_000) return
    this.#before = this.#last
    this.#last = { count: 0, calls: [], byId: new Map() }
  }

  get(id: string): Partition | undefined {
    for (const jobs of [this.#last, this.#before]) {
      for (const { partition, ids } of jobs?.calls.splice(0) ?? [])
        for (const each of idTexts(ids, 0)) jobs?.byId.set(each, partition)
    }
    return this.#last.byId.get(id) ?? this.#before?.byId.get(id)
  }
}
