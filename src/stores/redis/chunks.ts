/** Calls with many items: what one script does is bounded. */

/** Items of one call: so many take a script a few ms. */
export const MAX_ITEMS_PER_CALL = 500
/** Of calls that read and write much for each job, such as `cancel`. */
export const MAX_CHANGES_PER_CALL = 200

export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
}

/**
 * Sends items in as many calls as they take.
 * @param call answers per item, the first ones at least: where jobs are large, the others are sent again
 * @param most items in one call
 * @returns an answer per item @throws the first error, once all calls are over
 */
export async function inChunks<Item, Answer>(
  items: readonly Item[],
  call: (items: readonly Item[]) => Promise<readonly Answer[]>,
  most = MAX_ITEMS_PER_CALL,
): Promise<Answer[]> {
  const send = async (some: readonly Item[]): Promise<Answer[]> => {
    const answers: Answer[] = []
    while (answers.length < some.length) {
      const more = await call(answers.length === 0 ? some : some.slice(answers.length))
      if (more.length === 0) throw new TypeError('millpond: the server answered nothing')
      answers.push(...more)
    }
    return answers
  }
  if (items.length <= most) return send(items)
  const settled = await Promise.allSettled(chunks(items, most).map(send))
  return settled.flatMap((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
}
