/** The store's connections by a `sql` of postgres.js that the caller brings. */
import type postgres from 'postgres'
import { invalid } from '../../options.ts'
import { type Cells, type Database, rowsOf, type Session } from './database.ts'
import { isCells } from './pg-client.ts'
import { scriptOf } from './script.ts'
import { sessionOn } from './session.ts'

export function isPostgresJs(client: unknown): client is postgres.Sql {
  return typeof client === 'function' && 'unsafe' in client && 'begin' in client && 'listen' in client
}

/** All other parsers and transforms are passed over. @throws InvalidOption */
function checkTransforms(client: unknown): void {
  const { options } = client as { options?: { transform?: { row?: { from?: unknown } } } }
  if (options?.transform?.row?.from == null) return
  invalid(
    'a postgres.js client with transform.row changes every answer: give Millpond one without it; transform.column ' +
      'and transform.value may stay',
  )
}

/** Not the simple protocol, which would let several statements through. */
const ONE_STATEMENT = { prepare: false, simple: false } as object

export class PostgresJs implements Database {
  readonly #sql: postgres.Sql
  readonly #deadline: number
  readonly #ended = Promise.withResolvers<void>()
  #listening: { unlisten: () => Promise<void> } | undefined

  /** @param deadline ms after which the server gives up a call; 0: none */
  constructor(sql: postgres.Sql, deadline = 0) {
    checkTransforms(sql)
    this.#sql = sql
    this.#deadline = deadline
  }

  call(statement: string, values: readonly unknown[]): Promise<Cells[]> {
    return this.run(scriptOf(statement, values, this.#deadline))
  }

  async run(script: string): Promise<Cells[]> {
    return cellsOf(await this.#sql.unsafe(script).simple().raw())
  }

  /**
   * By `sql.begin`, which hears of a connection that is lost while nothing is under way. A statement on a reserved connection that is
   * lost so would never be answered, and end the process.
   */
  async begin(mode: string): Promise<Session> {
    const begun = Promise.withResolvers<postgres.TransactionSql>()
    const finished = Promise.withResolvers<void>()
    const over = this.#sql.begin(mode, async (tx) => {
      begun.resolve(tx)
      await finished.promise
    })
    let lost = false
    const gone = over.then(
      () => Promise.reject(new Error('Connection terminated: the transaction is over')),
      (error: unknown) => {
        lost = true
        throw error ?? new Error('Connection terminated')
      },
    )
    gone.catch(begun.reject)
    const tx = await begun.promise
    return sessionOn(
      {
        async query(text, params) {
          return rowsOf(await tx.unsafe(text, [...params] as postgres.ParameterOrJSON<never>[], ONE_STATEMENT))
        },
        run: async (script) => cellsOf(await tx.unsafe(script).simple().raw()),
        // Our own statement ends the transaction: `sql.begin` would roll it back if any statement failed, even if the handler caught the
        // error. This begins another transaction, which `sql.begin` then ends.
        afterwards: 'begin read only',
        async release() {
          // On a lost connection its own last statement would never be answered, and end the process.
          if (!lost) finished.resolve()
          await over.catch(() => {})
        },
      },
      gone,
    )
  }

  /** postgres.js connects anew by itself. */
  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    this.#listening = await this.#sql.listen(channel, heard, ready)
    await this.#ended.promise
  }

  async pooled(): Promise<boolean> {
    const answer = await this.#sql.unsafe('select pg_catalog.pg_backend_pid()', [], ONE_STATEMENT).raw()
    const [row] = cellsOf(answer)
    // A pooler hands out numbers of its own when we connect, and the server those of its processes.
    return answer.state.pid !== Number(row?.[0])
  }

  async end(): Promise<void> {
    this.#ended.resolve()
    await this.#listening?.unlisten()
  }
}

/** `raw` answers: rows of buffers; of several statements a list of such answers, of which the last one counts. */
export function cellsOf(answer: readonly unknown[]): Cells[] {
  const last = answer.at(-1)
  const rows = Array.isArray(last) && 'command' in last ? last : answer
  return rows.map((row) => (Array.isArray(row) ? row.map(textOf) : row)).filter(isCells)
}

const textOf = (cell: unknown): unknown => (Buffer.isBuffer(cell) ? cell.toString() : cell)
