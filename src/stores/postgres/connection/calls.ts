/**
 * Makes the store's calls on a database: names the schema, repeats what the server undid for another transaction's sake, and turns
 * foreign errors into ours. Counts the operations under way, so that closing waits for them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillpondError } from '../../../values/errors/errors.ts'
import { isLost, isUndone, toMillpondError } from '../errors.ts'
import { orNull } from '../wire.ts'
import type { Cells, Database } from './database.ts'
import { inlined, scriptInside, scriptOf } from './script.ts'

const TRIES = 5
/** How long a call that may be repeated is tried again, in ms. */
const PATIENCE = 10_000
const LONGEST_PAUSE = 250
/**
 * Ms for which a shared call waits for a lock, and for which one of its halves does: see `held.ts`. Calls of other processes that need the
 * same keys follow each other in less than the first, even where the server is busy.
 */
const HURRY = 200
const HURRY_OF_HALVES = 50
/** The class of the advisory locks of calls that wait alone. */
const ALONE = "pg_catalog.hashtext('millpond alone')"

/**
 * A call is written as `claim($1, $2)`. What comes back is as the head of the function's SQL file says; its type is named where the call is
 * made. It is not checked: the library installs the very functions that it calls.
 */
export class Calls {
  readonly database: Database
  readonly schema: string
  /** Ms after which the server gives up a call. */
  readonly deadline: number
  readonly #clock: (() => number) | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #closed = false

  /** @param deadline ms after which the server gives up a call inside a transaction of a handler */
  constructor(database: Database, schema: string, deadline: number, clock: (() => number) | undefined) {
    this.database = database
    this.schema = schema
    this.deadline = deadline
    this.#clock = clock
  }

  /** For the `now` of an operation: null but in tests. */
  now(): number | null {
    return this.#clock === undefined ? null : this.#clock()
  }

  assertOpen(): void {
    if (this.#closed) throw new MillpondError('Closed', 'the PostgreSQL store is closed; open a new one to go on')
  }

  /** An operation of the store: refused once it is closed, and waited for when it closes. */
  operation<In extends unknown[], Out>(run: (...given: In) => Promise<Out>): (...given: In) => Promise<Out> {
    return async (...given) => {
      this.assertOpen()
      return this.track(run(...given))
    }
  }

  track<T>(promise: Promise<T>): Promise<T> {
    this.#underWay.add(promise)
    const over = () => this.#underWay.delete(promise)
    promise.then(over, over)
    return promise
  }

  /** Refuses further operations, and waits for those under way. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay])
  }

  /** @param columns of a function's result, `answer` */
  async rows(columns: string, call: string, values: readonly unknown[]): Promise<Cells[]> {
    return this.#repeated(() => this.database.call(this.#statement(columns, call), values))
  }

  async #repeated(call: () => Promise<Cells[]>): Promise<Cells[]> {
    for (let left = TRIES; ; left--) {
      try {
        return await call()
      } catch (error) {
        if (left <= 1 || !isUndone(error)) throw toMillpondError(error)
      }
    }
  }

  /** The results of a function that returns a set. */
  async answers<T>(call: string, values: readonly unknown[]): Promise<T[]> {
    const rows = await this.rows(AS_JSON, call, values)
    return rows.map(([answer]) => parsed(answer))
  }

  /** The result of a function. */
  async answer<T>(call: string, values: readonly unknown[]): Promise<T> {
    const [[answer] = []] = await this.rows(AS_JSON, call, values)
    return parsed(answer)
  }

  /** A function without a result. */
  async done(call: string, values: readonly unknown[]): Promise<void> {
    await this.rows('answer', call, values)
  }

  /**
   * For a call that changes nothing when it is made a second time. If the connection was lost with the answer, it is made again until
   * an answer comes, whatever errors come meanwhile: none of them says anything about the first call.
   * @param repeated the values of a repeat: the first call may have taken effect
   */
  async repeatable<T>(
    values: readonly unknown[],
    repeated: () => readonly unknown[],
    call: (values: readonly unknown[]) => Promise<T>,
  ): Promise<T> {
    const until = performance.now() + PATIENCE
    let given = values
    let lost = false
    for (let pause = 10; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        return await call(given)
      } catch (error) {
        lost ||= error instanceof MillpondError && isLost(error.cause)
        if (!lost || performance.now() > until) throw error
        given = repeated()
        await sleep(pause)
      }
    }
  }

  /**
   * As `answer`, for a call that carries the items of many: it waits for a lock for `HURRY` alone.
   * @param isHalf of a call that has waited so long
   */
  async shared<T>(call: string, values: readonly unknown[], isHalf = false): Promise<T> {
    const ms = isHalf ? HURRY_OF_HALVES : HURRY
    const hurry = `pg_catalog.set_config('lock_timeout', '${ms}ms', true) <> ''`
    const statement = `select case when ${hurry} then (${this.#statement(AS_JSON, call)}) end`
    const [[answer] = []] = await this.#repeated(() => this.database.call(statement, values))
    return parsed(answer)
  }

  /** As `answer`, for one item that waits for a lock. @param lane a number by which `holders` finds it */
  async alone<T>(call: string, values: readonly unknown[], lane: number, deadline: number): Promise<T> {
    const statement = `select pg_catalog.pg_advisory_xact_lock(${ALONE}, ${lane}); ${this.#statement(AS_JSON, call)}`
    const [[answer] = []] = await this.#repeated(() => this.database.run(scriptOf(statement, values, deadline)))
    return parsed(answer)
  }

  /** Who holds what this call waits for, in words; empty: not known. Texts in statements may be data, and are left out. */
  async holders(lane: number): Promise<string> {
    const look = `select blocking.pid, extract(epoch from pg_catalog.now() - xact_start)::bigint, state, query
      from pg_catalog.pg_locks as own cross join lateral unnest(pg_catalog.pg_blocking_pids(own.pid)) as blocking(pid)
      left join pg_catalog.pg_stat_activity as activity on activity.pid = blocking.pid
      where own.locktype = 'advisory' and own.classid = ${ALONE}::oid and own.objid = $1::oid order by xact_start limit 1`
    const [row] = await this.database.run(inlined(look, [String(lane)])).catch(() => [])
    if (row === undefined) return ''
    const [pid, age, state, query] = row
    const since = age === null || age === undefined ? '' : `, open for ${age} s, ${state}`
    const last = query ? `, last statement: ${query.replaceAll(LITERALS, "'…'").slice(0, 120)}` : ''
    return `process ${pid} of the server (its transaction is another one${since}${last})`
  }

  /** A call inside a handler's transaction, as a script. */
  inside(call: string, values: readonly unknown[]): string {
    return scriptInside(this.#statement(AS_JSON, call), values, this.deadline)
  }

  #statement(columns: string, call: string): string {
    return `select ${columns} from ${this.schema}.${call} as answer`
  }
}

/** Of SQL: quoted by ' or by $. */
const LITERALS = /'(?:[^']|'')*'?|\$(\w*)\$[\s\S]*?(?:\$\1\$|$)/g
/** Arrays and numbers, too, so that there is one form to read. */
const AS_JSON = 'pg_catalog.to_json(answer)'

const parsed = (answer: string | null | undefined) => orNull(answer, (text) => JSON.parse(text))
