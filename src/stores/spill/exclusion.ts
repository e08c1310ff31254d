/**
 * Takes and changes of the durable store, which exclude each other: a take must not read a job that a change is about to
 * alter, and a change must not look for a job that is on its way. Each waits for those of the other kind that came before
 * it, so none waits forever.
 */
export class Exclusion {
  readonly #takes = new Set<Promise<unknown>>()
  readonly #changes = new Set<Promise<unknown>>()

  take<T>(run: () => Promise<T>): Promise<T> {
    return runAfter(this.#changes, this.#takes, run)
  }

  change<T>(run: () => Promise<T>): Promise<T> {
    return runAfter(this.#takes, this.#changes, run)
  }
}

async function runAfter<T>(
  others: ReadonlySet<Promise<unknown>>,
  own: Set<Promise<unknown>>,
  run: () => Promise<T>,
): Promise<T> {
  const running = others.size === 0 ? run() : Promise.allSettled(others).then(run)
  own.add(running)
  try {
    return await running
  } finally {
    own.delete(running)
  }
}
