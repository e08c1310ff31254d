/** What the operations of one store share. */

import type { ClaimedJob, QueueSettings } from '../../store.ts'
import { MillpondError, storeError } from '../../values/errors.ts'
import type { Arg, Calls } from './connection/calls.ts'
import type { ScriptName } from './connection/scripts.ts'
import type { Notifier } from './notifier.ts'
import type { Locations, Partition } from './partition.ts'
import type { Queues } from './queues.ts'
import { pack } from './wire.ts'

/** Items of one call: what a script does is bounded. */
export const MAX_ITEMS_PER_CALL = 500

export interface AskOptions {
  /** Answered only when the replicas have what was written. */
  safe?: boolean
  /** The same was asked before, and may have taken effect. */
  again?: boolean
}

export interface Context {
  readonly calls: Calls
  /** For what is to be on replicas before it is answered: a connection of its own, since the server answers nothing else on it meanwhile. */
  readonly safeCalls: Calls
  readonly queues: Queues
  readonly notifier: Notifier
  readonly prefix: string
  /** Milliseconds until a call without an answer is rejected. */
  readonly timeout: number
  /** The time of a test; null: the server's own. */
  readonly now: () => number | null
  /** Settings that were made here, by queue, for a server that has lost them. */
  readonly settings: Map<string, QueueSettings>
  readonly locations: Locations
  /** By partition and worker: `claim` settles them. */
  readonly doubtfulClaims: Map<string, DoubtfulClaim>
  /** Claims whose ending was told without an answer: it may have taken effect, and will be told again. */
  readonly doubtfulEndings: WeakSet<ClaimedJob>
  /** Grows with each claim and sweep, so that each begins with the next partition or bucket. */
  turn: number
}

/** A claim whose answer is lost. */
export interface DoubtfulClaim {
  partition: Partition
  worker: string
  /** Names the call among all of the worker. */
  call: string
}

/**
 * Calls a script on a partition.
 * @param head what its head holds beside what all have @param items what follows the head
 * @throws StoreUnavailable, StoreBusy, StoreFull, StoreFailed, Closed
 */
export function ask(
  { calls, safeCalls, notifier, now }: Context,
  name: ScriptName,
  partition: Partition,
  head: readonly unknown[] = [],
  items: readonly Arg[] = [],
  { safe = false, again = false }: AskOptions = {},
): Promise<readonly unknown[]> {
  const { tag, queue, part } = partition
  const first = pack([now(), notifier.channel, notifier.origin, queue, part, ...head])
  const args = [first, again ? '1' : '0', ...items]
  return (safe ? safeCalls : calls).script(name, { tag, keys: partition.keys(name) }, args, true)
}

/**
 * Asks partitions about items, each about its own, all at once.
 * @param homeOf the partition of an item; undefined: it is not asked for, and has no answer
 * @param call answers per item
 * @returns per item its answer, or the error of the call that carried it
 */
export async function askEach<Item, Answer>(
  items: readonly Item[],
  homeOf: (item: Item, at: number) => Partition | undefined,
  call: (partition: Partition, items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<(Answer | MillpondError | undefined)[]> {
  const groups = new Map<Partition, number[]>()
  for (let at = 0; at < items.length; at++) {
    const item = items[at]
    const home = item === undefined ? undefined : homeOf(item, at)
    if (home === undefined) continue
    const places = groups.get(home)
    if (places === undefined) groups.set(home, [at])
    else places.push(at)
  }
  const answers: (Answer | MillpondError | undefined)[] = items.map(() => undefined)
  const askSome = async (partition: Partition, places: readonly number[]) => {
    const own =
      places.length === items.length ? items : places.map((at) => items[at]).filter((item) => item !== undefined)
    try {
      const replies = await call(partition, own)
      for (const [i, at] of places.entries()) answers[at] = replies[i]
    } catch (error) {
      for (const at of places) answers[at] = storeError(error, 'a call')
    }
  }
  const calls = [...groups].flatMap(([partition, places]) =>
    chunks(places, MAX_ITEMS_PER_CALL).map((some) => askSome(partition, some)),
  )
  await Promise.all(calls)
  return answers
}

/** @throws the first error among answers */
export function answered<Answer>(answers: readonly (Answer | MillpondError | undefined)[]): (Answer | undefined)[] {
  return answers.map((answer) => {
    if (answer instanceof MillpondError) throw answer
    return answer
  })
}

export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
}
