/** Counts to a total that is named only later. */
export class Tally {
  count = 0
  #awaited = Number.POSITIVE_INFINITY
  #reached = () => {}

  add(many = 1): void {
    this.count += many
    if (this.count >= this.#awaited) this.#reached()
  }

  /** Resolves when the count is there. */
  reaches(total: number): Promise<void> {
    if (this.count >= total) return Promise.resolve()
    this.#awaited = total
    return new Promise((resolve) => {
      this.#reached = resolve
    })
  }
}
