/** Things in the order of their ids; of those taken away, the ids, since a search has to compare with something. */

/** What a thing on a shelf carries. */
export interface Shelved<Thing extends Shelved<Thing>> {
  readonly id: string
  /** Where it stands; null: on no shelf. */
  shelf: Shelf<Thing> | null
  shelved: number
}

export class Shelf<Thing extends Shelved<Thing>> {
  readonly #places: (Thing | string)[] = []
  /** How many are there. */
  count = 0

  /** How many were ever put there. */
  get length(): number {
    return this.#places.length
  }

  /** Its id must be greater than all before. */
  add(thing: Thing): void {
    thing.shelf = this
    thing.shelved = this.#places.length
    this.#places.push(thing)
    this.count++
  }

  remove(thing: Thing): void {
    this.#places[thing.shelved] = thing.id
    thing.shelf = null
    this.count--
  }

  get(id: string): Thing | undefined {
    const found = this.#places[lastWhere(this.#places.length, (at) => this.#id(at) <= id)]
    return typeof found === 'object' && found.id === id ? found : undefined
  }

  /** Takes all away. */
  clear(): Thing[] {
    const left = this.#places.filter((place) => typeof place === 'object')
    for (const thing of left) this.remove(thing)
    return left
  }

  /** The first that ever stood here. */
  get firstId(): string {
    return this.#id(0)
  }

  #id(at: number): string {
    const place = this.#places[at]
    return typeof place === 'object' ? place.id : (place ?? '')
  }
}

/** The last index below `length` for which the condition holds, given that it holds up to some index and not beyond; -1: for none. */
export function lastWhere(length: number, holds: (at: number) => boolean): number {
  let low = -1
  let high = length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (holds(middle)) low = middle
    else high = middle
  }
  return low
}
