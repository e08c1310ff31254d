/** Calls with many items: what one script does is bounded. */

/** Items of one call: so many take a script a few ms. */
export const MAX_ITEMS_PER_CALL = 500
/** Of calls that read and write much for each job, such as `cancel`. */
export const MAX_CHANGES_PER_CALL = 200

export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
}

/** Bytes of one call, about, where items have a size: scripts leave more than that to another call. */
const MAX_BYTES_PER_CALL = 4 * 1024 * 1024

/** @returns pieces of `most` items at most, and about `MAX_BYTES_PER_CALL` bytes */
function piecesOf<T>(items: readonly T[], most: number, sizeOf: (item: T) => number): T[][] {
  const pieces: T[][] = []
  let piece: T[] = []
  let bytes = 0
  for (const item of items) {
    const size = sizeOf(item)
    if (piece.length > 0 && (piece.length === most || bytes + size > MAX_BYTES_PER_CALL)) {
      pieces.push(piece)
      piece = []
      bytes = 0
    }
    piece.push(item)
    bytes += size
  }
  return piece.length === 0 ? pieces : [...pieces, piece]
}

/**
 * Sends items in as many calls as they take.
 * @param call answers per item, the first ones at least: where jobs are large, the others are sent again
 * @param most items in one call
 * @param sizeOf bytes of an item, about; 0: they do not matter
 * @returns an answer per item @throws the first error, once all calls are over
 */
export async function inChunks<Item, Answer>(
  items: readonly Item[],
  call: (items: readonly Item[]) => Promise<readonly Answer[]>,
  most = MAX_ITEMS_PER_CALL,
  sizeOf: (item: Item) => number = () => 0,
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
  const pieces = piecesOf(items, most, sizeOf)
  if (pieces.length <= 1) return send(items)
  const settled = await Promise.allSettled(pieces.map(send))
  return settled.flatMap((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
}
