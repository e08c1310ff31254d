/**
 * All orders that can happen. A race asks at each point which session goes on; which of them can depends on what went before, as a session that waits
 * for a lock cannot. So the orders are found by running: each run follows a path to its end, and leaves the other choices on the way as paths to take.
 */

export interface Point {
  /** The sessions that could have gone on. */
  able: readonly number[]
  chosen: number
}

export class Path {
  readonly points: Point[] = []
  readonly #begin: readonly number[]
  readonly #pick: (able: readonly number[]) => number

  /** @param begin the first choices @param pick chooses after them */
  constructor(begin: readonly number[], pick: (able: readonly number[]) => number) {
    this.#begin = begin
    this.#pick = pick
  }

  /** undefined: the path wants a session that cannot go on yet. */
  choose(able: readonly number[]): number | undefined {
    const wanted = this.#begin[this.points.length]
    if (wanted !== undefined && !able.includes(wanted)) return undefined
    const chosen = wanted ?? this.#pick(able)
    this.points.push({ able, chosen })
    return chosen
  }

  get order(): string {
    return this.points.map(({ chosen }) => chosen).join('')
  }

  /** The choices that were left on the way. */
  forks(): number[][] {
    const chosen = this.points.map((point) => point.chosen)
    return this.points.flatMap(({ able }, at) =>
      at < this.#begin.length
        ? []
        : able.filter((other) => other !== chosen[at]).map((other) => [...chosen.slice(0, at), other]),
    )
  }
}

export interface Orders {
  most: number
  random: () => number
  /** The first choices of all; none unless given. */
  begin?: readonly number[] | undefined
}

/**
 * Runs the race in every order, or in `most` of them, chosen at random.
 * @param run one race; it resolves to false if the path could not be followed
 */
export async function inAllOrders(
  run: (path: Path) => Promise<boolean>,
  { most, random, begin = [] }: Orders,
): Promise<number> {
  const left: number[][] = [[...begin]]
  let count = 0
  while (left.length > 0 && count < most) {
    const at = Math.floor(random() * left.length)
    const [from = []] = left.splice(at, 1)
    const path = new Path(from, (able) => able[Math.floor(random() * able.length)] ?? 0)
    const followed = await run(path)
    count++
    if (followed) left.push(...path.forks())
  }
  return count
}
