/** Edits up to which a word counts as a slip of another one. */
const MOST_EDITS = 2

/** `; did you mean serve?`, or nothing if no known word is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = known
    .map((name) => ({ name, edits: editsBetween(word, name) }))
    .filter(({ name, edits }) => edits <= Math.min(MOST_EDITS, name.length - 1))
    .sort((a, b) => a.edits - b.edits)
  return near[0] === undefined ? '' : `; did you mean ${near[0].name}?`
}

/** How many letters are added, lost, changed, or swapped with their neighbour. */
function editsBetween(a: string, b: string): number {
  // Row by row, of the table of all beginnings of a against all of b.
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = a[i - 1] === b[j - 1] ? 0 : 1
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(
          at(last, j) + 1,
          at(row, j - 1) + 1,
          at(last, j - 1) + changed,
          isSwap ? at(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    before = last
    last = row
  }
  return at(last, b.length)
}

const at = (row: readonly number[], index: number): number => row[index] ?? Number.POSITIVE_INFINITY
