/**
 * Makes the store's calls on a database: names the schema, repeats what the server undid for another transaction's sake, and turns
 * foreign errors into ours. Counts the calls under way, so that closing waits for them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillpondError } from '../../../values/errors.ts'
import { isLost, isUndone, toMillpondError } from '../errors.ts'
import { type Database, type Row, scriptInside } from './database.ts'

const TRIES = 5
/** How long a call that may be repeated is tried again, in ms. */
const PATIENCE = 10_000
const LONGEST_PAUSE = 250

export class Calls {
  readonly database: Database
  readonly schema: string
  readonly #deadline: number
  readonly #clock: (() => number) | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #closed = false

  /** @param deadline ms after which the server gives up a call inside a transaction of a handler */
  constructor(database: Database, schema: string, deadline: number, clock: (() => number) | undefined) {
    this.database = database
    this.schema = schema
    this.#deadline = deadline
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

  /** The row of a function with several results. @param call as in `claim($1, $2)` */
  async row(call: string, values: readonly unknown[]): Promise<Row> {
    this.assertOpen()
    const [row = {}] = await this.track(this.#tries(`select * from ${this.schema}.${call}`, values).catch(fail))
    return row
  }

  /** The result of a function. */
  async answer(call: string, values: readonly unknown[]): Promise<unknown> {
    return (await this.answers(call, values))[0]
  }

  /** The results of a function that returns a set. */
  async answers(call: string, values: readonly unknown[]): Promise<unknown[]> {
    this.assertOpen()
    return this.track(this.answersEvenClosing(call, values))
  }

  /** For a call that was accepted while the store was open, and that its maker tracks. */
  answersEvenClosing(call: string, values: readonly unknown[]): Promise<unknown[]> {
    return this.#answers(call, values).catch(fail)
  }

  /**
   * For a call that changes nothing when it is made a second time. If the connection was lost with the answer, it is made again until
   * an answer comes, whatever errors come meanwhile: none of them says anything about the first call. To be tracked by its maker.
   * @param repeated the values of a repeat: the first call may have taken effect
   */
  async repeatable(call: string, values: readonly unknown[], repeated: () => readonly unknown[]): Promise<unknown> {
    const until = performance.now() + PATIENCE
    let given = values
    let lost = false
    for (let pause = 10; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        return (await this.#answers(call, given))[0]
      } catch (error) {
        lost ||= isLost(error)
        if (!lost || performance.now() > until) fail(error)
        given = repeated()
        await sleep(pause)
      }
    }
  }

  /** A call inside a handler's transaction, as a script. */
  inside(call: string, values: readonly unknown[]): string {
    return scriptInside(this.#statement(call), values, this.#deadline)
  }

  track<T>(promise: Promise<T>): Promise<T> {
    this.#underWay.add(promise)
    const over = () => this.#underWay.delete(promise)
    promise.then(over, over)
    return promise
  }

  /** Refuses further calls, and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay])
  }

  #statement(call: string): string {
    return `select ${this.schema}.${call} as answer`
  }

  async #answers(call: string, values: readonly unknown[]): Promise<unknown[]> {
    return (await this.#tries(this.#statement(call), values)).map(({ answer }) => answer)
  }

  async #tries(statement: string, values: readonly unknown[]): Promise<Row[]> {
    for (let left = TRIES; ; left--) {
      try {
        return await this.database.call(statement, values)
      } catch (error) {
        if (left <= 1 || !isUndone(error)) throw error
      }
    }
  }
}

function fail(error: unknown): never {
  throw toMillpondError(error)
}
