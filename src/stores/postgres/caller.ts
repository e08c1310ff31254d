/**
 * Makes the store's calls on a database: names the schema, tries again what the server undid for another transaction's sake,
 * and turns foreign errors into ours. Counts what is under way, so that closing waits for it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillpondError } from '../../errors.ts'
import type { Database, Row } from './database.ts'
import { isLost, isUndone, toMillpondError } from './errors.ts'
import { inlined } from './inline.ts'

const TRIES = 5
/** How long a call that may be repeated is tried again, in ms. */
const PATIENCE = 10_000
const LONGEST_PAUSE = 250

export class Caller {
  readonly database: Database
  readonly schema: string
  readonly #before: string
  readonly #clock: (() => number) | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #closed = false

  /**
   * @param deadline ms after which the server gives up a call of ours. Less than our own patience: else it would finish a call that nobody
   * waits for, and keep jobs of a claim for nobody
   */
  constructor(database: Database, schema: string, deadline: number, clock: (() => number) | undefined) {
    this.database = database
    this.schema = schema
    this.#before = `set local statement_timeout = ${deadline}; select * from ${schema}.`
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

  /** A call inside a transaction. @param call as in `claim($1) as answer`; the schema and a dot go before it */
  inside(call: string, params: readonly unknown[]): string {
    return this.#before + inlined(call, params)
  }

  /** A call as a transaction of its own, whatever isolation the database has by default. */
  #alone(call: string, params: readonly unknown[]): string {
    return `set transaction isolation level read committed, read write; ${this.inside(call, params)}`
  }

  async rows(call: string, params: readonly unknown[]): Promise<Row[]> {
    this.assertOpen()
    return this.track(this.rowsEvenClosing(call, params))
  }

  /** For a call that was accepted while the store was open, and is tracked by whoever makes it. */
  async rowsEvenClosing(call: string, params: readonly unknown[]): Promise<Row[]> {
    try {
      return await this.#tries(this.#alone(call, params))
    } catch (error) {
      throw toMillpondError(error)
    }
  }

  /**
   * For a call that changes nothing when it is made a second time: if the connection was lost with the answer, it is made again
   * until it is known what became of it, whatever errors come meanwhile: none of them says anything about the first call. So nobody
   * hears of a failure that was none. To be tracked by whoever makes it.
   * @param repeated makes the call as it is to be repeated: the first one may have taken effect
   */
  async repeatable(call: string, params: readonly unknown[], repeated: () => readonly unknown[]): Promise<Row[]> {
    const until = performance.now() + PATIENCE
    let script = this.#alone(call, params)
    let lost = false
    for (let pause = 10; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        return await this.#tries(script)
      } catch (error) {
        lost ||= isLost(error)
        if (!lost || performance.now() > until) throw toMillpondError(error)
        script = this.#alone(call, repeated())
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

  async #tries(script: string): Promise<Row[]> {
    for (let left = TRIES; ; left--) {
      try {
        return await this.database.run(script)
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
