/**
 * The jobs of shared calls that this process knows to be under way, and which of them began before a clear: callers that come after it
 * must not get their answers.
 *
 * Clears are counted. Who comes after `n` clears may have the answer of any job that was not known yet at the last of them.
 */
import { TtlMap } from '../values/collections/ttl-map.ts'

/**
 * Most jobs that are remembered as outdated. Beyond it the oldest goes: with a thousand clears a second of calls that are under way,
 * one of 10 s ago.
 */
const MAX_OUTDATED = 10_000

export class KnownJobs {
  /** By job key. An id is a promise while the push that tells it is under way; undefined if that failed. */
  readonly #underWay = new Map<string, Set<Promise<string | undefined>>>()
  /** By id: the first clear after which the job was outdated. */
  readonly #outdated: TtlMap<number>
  #clears = 0

  /** @param longest that a job lasts, in ms */
  constructor(longest: number) {
    this.#outdated = new TtlMap({ ttl: longest, entries: MAX_OUTDATED })
  }

  get clears(): number {
    return this.#clears
  }

  /**
   * @param id must not reject
   * @returns a function to be called when the process has no more to do with the job
   */
  enter(key: string, id: Promise<string | undefined>): () => void {
    const ids = this.#underWay.get(key) ?? new Set()
    this.#underWay.set(key, ids.add(id))
    return () => {
      ids.delete(id)
      if (ids.size === 0 && this.#underWay.get(key) === ids) this.#underWay.delete(key)
    }
  }

  clear(key: string): void {
    this.#clears++
    this.#outdate(this.#underWay.get(key) ?? [])
  }

  clearAll(): void {
    this.#clears++
    for (const ids of this.#underWay.values()) this.#outdate(ids)
  }

  /**
   * Whether the job began before one of the first `clears`. Waits for pushes of the key that are under way, since they
   * may have begun it.
   */
  async isOutdated(key: string, id: string, clears: number): Promise<boolean> {
    await Promise.all(this.#underWay.get(key) ?? [])
    const since = this.#outdated.get(id)
    return since !== undefined && since <= clears
  }

  #outdate(ids: Iterable<Promise<string | undefined>>): void {
    const clear = this.#clears
    for (const pending of ids) {
      void pending.then((id) => {
        if (id !== undefined && this.#outdated.get(id) === undefined) this.#outdated.put(id, clear)
      })
    }
  }
}
