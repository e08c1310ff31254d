/**
 * What autoscalers are told: a rise at once, a fall only to the most that was wanted in a while. So workers are not
 * stopped and started again with each wave. It is kept per process: after a restart, the present figure holds.
 */
interface Wish {
  at: number
  workers: number
}

/** Most queues and settings that are remembered; the one asked for longest ago is forgotten. */
const MAX_REMEMBERED = 1_000

export class PlanHolds {
  /** By what was asked for: falling numbers of workers, so the first is the most. */
  readonly #wishes = new Map<string, Wish[]>()

  /** @param hold milliseconds @returns the most workers wanted within that time */
  held(key: string, workers: number, hold: number, now: number): number {
    const wishes = (this.#wishes.get(key) ?? []).filter((wish) => wish.at > now - hold && wish.workers > workers)
    wishes.push({ at: now, workers })
    this.#wishes.delete(key)
    this.#wishes.set(key, wishes)
    if (this.#wishes.size > MAX_REMEMBERED) this.#wishes.delete(this.#wishes.keys().next().value ?? key)
    return wishes[0]?.workers ?? workers
  }
}
