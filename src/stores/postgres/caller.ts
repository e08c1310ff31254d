/**
 * Makes the store's calls on a database: names the schema, tries again what the server undid for another transaction's sake,
 * and turns foreign errors into ours. Counts what is under way, so that closing waits for it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillpondError } from '../../errors.ts'
import type { Database, Row } from './database.ts'
import { isAway, isLost, isUndone, toMillpondError } from './errors.ts'

const TRIES = 5
/** How long a call that may be repeated is tried again while the server is away, in ms. */
const PATIENCE = 10_000
const LONGEST_PAUSE = 250

export class Caller {
  readonly database: Database
  readonly schema: string
  readonly #clock: (() => number) | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #closed = false

  constructor(database: Database, schema: string, clock: (() => number) | undefined) {
    this.database = database
    this.schema = schema
    this.#clock = clock
  }

  /** For the `now` of an operation: null but in tests. */
  now(): number | null {
    return this.#clock === undefined ? null : this.#clock()
  }

  get closed(): boolean {
    return this.#closed
  }

  assertOpen(): void {
    if (this.#closed) throw new MillpondError('Closed', 'the PostgreSQL store is closed; open a new one to go on')
  }

  /** @param call as in `claim($1::text) as answer`; the schema and a dot go before it */
  async rows(call: string, params: readonly unknown[]): Promise<Row[]> {
    this.assertOpen()
    return this.track(this.rowsEvenClosing(call, params))
  }

  /** For a call that was accepted while the store was open, and is tracked by whoever makes it. */
  rowsEvenClosing(call: string, params: readonly unknown[]): Promise<Row[]> {
    return this.#attempt(`select * from ${this.schema}.${call}`, params)
  }

  /**
   * For a call that changes nothing when it is made a second time: if the connection was lost with the answer, it is made again
   * until it is known what became of it, so that nobody hears of a failure that was none. To be tracked by whoever makes it.
   * @param repeated told when the first one may have taken effect
   */
  async repeatable(call: string, params: readonly unknown[], repeated: () => void): Promise<Row[]> {
    const until = performance.now() + PATIENCE
    let lost = false
    for (let pause = 10; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        return await this.#tries(`select * from ${this.schema}.${call}`, params)
      } catch (error) {
        lost ||= isLost(error)
        if (!lost || !isAway(error) || performance.now() > until) throw toMillpondError(error)
        repeated()
        await sleep(pause)
      }
    }
  }

  track<T>(promise: Promise<T>): Promise<T> {
    this.#underWay.add(promise)
    const over = () => this.#underWay.delete(promise)
    promise.then(over, over)
    return promise
  }

  async #attempt(text: string, params: readonly unknown[]): Promise<Row[]> {
    try {
      return await this.#tries(text, params)
    } catch (error) {
      throw toMillpondError(error)
    }
  }

  async #tries(text: string, params: readonly unknown[]): Promise<Row[]> {
    for (let left = TRIES; ; left--) {
      try {
        return await this.database.query(text, params)
      } catch (error) {
        if (left <= 1 || !isUndone(error)) throw error
      }
    }
  }

  /** Refuses further calls, and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay])
  }
}
