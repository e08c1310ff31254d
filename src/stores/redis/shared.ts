/** What the parts of a Redis store share. */
import type { Bells } from '../bells.ts'
import type { Doorbell } from './doorbell.ts'
import type { Arg, CallOptions, Link } from './link.ts'
import type { Partition } from './partition.ts'
import type { Queues } from './queues.ts'
import type { ScriptName } from './scripts.ts'
import { pack } from './wire.ts'

/** Items of one call: what a script does is bounded. */
export const MOST_ITEMS = 500

export interface AskOptions extends CallOptions {
  /** Answered only when the replicas have what was written. */
  safe?: boolean
  /** The same was asked before, and may have taken effect. */
  again?: boolean
}

export class Shared {
  readonly link: Link
  /** For what is to be on replicas before it is answered: a connection of its own, since the server answers nothing else on it meanwhile. */
  readonly safe: Link
  readonly queues: Queues
  readonly doorbell: Doorbell
  /** Names this store among all processes. */
  readonly origin: string
  /** The time of a test; null: the server's own. */
  readonly now: () => number | null

  constructor(parts: Pick<Shared, 'link' | 'safe' | 'queues' | 'doorbell' | 'origin' | 'now'>) {
    this.link = parts.link
    this.safe = parts.safe
    this.queues = parts.queues
    this.doorbell = parts.doorbell
    this.origin = parts.origin
    this.now = parts.now
  }

  /** Rung in this process, at once. */
  get bells(): Bells {
    return this.doorbell.local
  }

  /**
   * Calls a script on a partition.
   * @param head what its head holds beside what all have @param items what follows the head
   * @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed
   */
  ask(
    name: ScriptName,
    partition: Partition,
    head: readonly unknown[] = [],
    items: readonly Arg[] = [],
    options: AskOptions = {},
  ): Promise<readonly unknown[]> {
    const { tag, queue, part } = partition
    const first = pack([this.now(), this.doorbell.channel, this.origin, queue, part, ...head])
    const { safe = false, again = false, ...rest } = options
    return (safe ? this.safe : this.link).call(
      name,
      { tag, keys: partition.keys(name) },
      [first, again ? '1' : '0', ...items],
      { repeatable: true, ...rest },
    )
  }

  /** After something was stored in a partition that is not listed yet: makes sure that the queue is in the list, whoever was about to remove it. */
  async list(partition: Partition): Promise<void> {
    await this.queues.register(partition)
    await this.ask('listed', partition)
    partition.listed()
  }
}

export function cut<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let at = 0; at < items.length; at += size) parts.push(items.slice(at, at + size))
  return parts
}

/** Cuts a list into what one call carries. */
export const pieces = <T>(items: readonly T[]): T[][] => cut(items, MOST_ITEMS)
