/** Calls to several partitions at once. They lie on several servers: what one of them cannot answer says nothing of the others. */
import { MillpondError, storeError } from '../../values/errors/errors.ts'

/** Items of one call: what a script does is bounded. */
export const MAX_ITEMS_PER_CALL = 500

/**
 * Asks partitions, or queues, about items, each about its own, all at once.
 * @param homeOf the partition of an item; undefined: it is not asked for, and has no answer
 * @param call answers per item, the first ones at least; none: of no item
 * @returns per item its answer, or the error of the call that carried it
 */
export async function askEach<Home, Item, Answer>(
  items: readonly Item[],
  homeOf: (item: Item, at: number) => Home | undefined,
  call: (home: Home, items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<(Answer | MillpondError | undefined)[]> {
  const homes = items.map(homeOf)
  const answers: (Answer | MillpondError | undefined)[] = items.map(() => undefined)
  const ask = async (home: Home, own: readonly number[]): Promise<void> => {
    let done = 0
    try {
      let left = own.length === items.length ? items : own.map((at) => items[at] as Item)
      while (left.length > 0) {
        const replies = await call(home, left)
        for (const [i, reply] of replies.entries()) answers[own[done + i] ?? -1] = reply
        // Where jobs are large, the last ones have no answer, and are sent again.
        if (replies.length === 0) break
        done += replies.length
        left = left.slice(replies.length)
      }
    } catch (error) {
      const failure = storeError(error, 'a call')
      for (const at of own.slice(done)) answers[at] = failure
    }
  }
  const calls = [...Map.groupBy(homes.keys(), (at) => homes[at])].flatMap(([home, own]) =>
    home === undefined ? [] : chunks(own, MAX_ITEMS_PER_CALL).map((some) => ask(home, some)),
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

  note(reason: unknown): void {
    this.#first ??= { reason }
  }

  /** Settles with undefined where the promise rejects. */
  async noted<T>(promise: Promise<T>): Promise<T | undefined> {
    try {
      return await promise
    } catch (reason) {
      this.note(reason)
      return undefined
    }
  }

  /** @throws the first failure that was noted, if there is one */
  throwFirst(): void {
    if (this.#first !== undefined) throw this.#first.reason
  }
}
