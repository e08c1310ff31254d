/** What the contenders of `groups` have in common. */

export const QUEUE = 'grouped'
/** Jobs of a call, where a library takes many in one. */
const BULK = 500

/** One bulk after the other. */
export async function inBulks<Item>(items: readonly Item[], push: (bulk: Item[]) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < items.length; from += BULK) await push(items.slice(from, from + BULK))
}
