/** Calls to several partitions lie on several servers: what one of them cannot answer says nothing of the others. */
export class Failures {
  #first: { reason: unknown } | undefined

  /** Settles with undefined where the promise rejects. */
  async noted<T>(promise: Promise<T>): Promise<T | undefined> {
    try {
      return await promise
    } catch (reason) {
      this.#first ??= { reason }
      return undefined
    }
  }

  /** @throws the first failure that was noted, if there is one */
  throwFirst(): void {
    if (this.#first !== undefined) throw this.#first.reason
  }
}
