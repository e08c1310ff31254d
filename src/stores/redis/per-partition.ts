/** Calls to several partitions at once. They lie on several servers: what one of them cannot answer says nothing of the others. */
import { MillpondError, storeError } from '../../values/errors.ts'
import type { Partition } from './partition.ts'

/** Items of one call: what a script does is bounded. */
export const MAX_ITEMS_PER_CALL = 500

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
  const answers: (Answer | MillpondError | undefined)[] = items.map(() => undefined)
  const ask = async (partition: Partition, own: readonly (readonly [number, Item])[]) => {
    try {
      const replies = await call(
        partition,
        own.map(([, item]) => item),
      )
      for (const [i, [at]] of own.entries()) answers[at] = replies[i]
    } catch (error) {
      for (const [at] of own) answers[at] = storeError(error, 'a call')
    }
  }
  const byPartition = Map.groupBy(items.entries(), ([at, item]) => homeOf(item, at))
  const calls = [...byPartition].flatMap(([partition, own]) =>
    partition === undefined ? [] : chunks(own, MAX_ITEMS_PER_CALL).map((some) => ask(partition, some)),
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

/** Notes which calls of several were rejected. */
export class Failures {
  #first: { reason: unknown } | undefined

  /** Settles with undefined where the promise rejects. */
  async noted<T>(promise: Promise<T>): Promise<T | undefined> {
    try {
      return await promise
    } catch (reason) {
      this.#first ??= { reason }
      return undefined
    }
  }

  /** @throws the first failure that was noted, if there is one */
  throwFirst(): void {
    if (this.#first !== undefined) throw this.#first.reason
  }
}
