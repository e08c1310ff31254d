/**
 * Which queues have been idle for long, as the sweeps of one process saw them: those are removed. A queue is idle when it has no job and
 * every setting is the default.
 *
 * It is only a matter of patience, so each process keeps it for itself: what is removed is looked at once more, and by the store itself.
 */

/** Milliseconds for which every sweep must have found a queue idle. */
const IDLE_FOR = 3_600_000
/** Queues that one sweep removes. */
const MOST_REMOVED = 100

export class IdleQueues {
  #since = new Map<string, number>()

  /** @param idle all that are idle now @returns which of them are to be removed */
  found(idle: Iterable<string>, now: number): string[] {
    const since = new Map<string, number>()
    const long: string[] = []
    for (const name of idle) {
      const began = this.#since.get(name) ?? now
      since.set(name, began)
      if (now - began >= IDLE_FOR && long.length < MOST_REMOVED) long.push(name)
    }
    this.#since = since
    return long
  }
}
