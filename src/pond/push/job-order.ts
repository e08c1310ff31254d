/** The order in which jobs that wait for each other are pushed: parents before their children. */
import { MillpondError } from '../../values/errors/errors.ts'

/** Places of a circle that the message names. */
const MAX_NAMED = 20

/**
 * @param parents of each job, by their places
 * @returns the places, each behind those of its parents; as they were, if they are so
 * @throws GraphCycle
 */
export function inOrder(parents: readonly (readonly number[])[]): number[] {
  if (parents.every((own, at) => own.every((parent) => parent < at))) return [...parents.keys()]
  const open = parents.map((own) => own.length)
  const children: number[][] = parents.map(() => [])
  for (const [at, own] of parents.entries()) for (const parent of own) children[parent]?.push(at)
  const order = [...parents.keys()].filter((at) => open[at] === 0)
  // The list grows while it is gone through.
  for (const done of order) {
    for (const child of children[done] ?? []) {
      const left = (open[child] ?? 0) - 1
      open[child] = left
      if (left === 0) order.push(child)
    }
  }
  if (order.length < parents.length) throw cycle(parents, open)
  return order
}

/** @param open of each job, how many of its parents can never start; of some, more than none */
function cycle(parents: readonly (readonly number[])[], open: readonly number[]): MillpondError {
  const path: number[] = []
  const seen = new Map<number, number>()
  // From any job that is left, a parent that is left leads on, and at last back.
  let at = open.findIndex((left) => left > 0)
  while (!seen.has(at)) {
    seen.set(at, path.length)
    path.push(at)
    at = parents[at]?.find((parent) => (open[parent] ?? 0) > 0) ?? at
  }
  const circle = [...path.slice(seen.get(at)), at]
  const named = circle.slice(0, MAX_NAMED).join(' after ')
  const more = circle.length > MAX_NAMED ? `, and ${circle.length - MAX_NAMED} more` : ''
  return new MillpondError('GraphCycle', `jobs wait for each other in a circle, by their places: ${named}${more}`)
}
