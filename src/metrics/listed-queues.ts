/**
 * Which queues have series of their own. A monitoring system keeps every series that it ever saw, so their number is bounded: the first
 * queues, by name and then as they come, keep their places until they are removed.
 */
export class ListedQueues {
  readonly #most: number
  #listed = new Set<string>()

  constructor(most: number) {
    this.#most = most
  }

  /** Of these queues, which are all there are. */
  among(names: readonly string[]): ReadonlySet<string> {
    const present = new Set(names)
    const kept = [...this.#listed].filter((name) => present.has(name))
    const others = names.filter((name) => !this.#listed.has(name)).sort()
    this.#listed = new Set([...kept, ...others].slice(0, this.#most))
    return this.#listed
  }
}
