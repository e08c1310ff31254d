/**
 * What callers hand in as their transaction, each brought to one form: a function of text and parameters.
 *
 * - postgres.js: the `sql` of `sql.begin(async (sql) => …)`
 * - `pg`: the client on which `begin` was run
 * - Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`
 * - Drizzle: the `tx` of `db.transaction(async (tx) => …)`
 * - any function `(text, params) => rows`, or `=> { rows }`
 */
import { MillpondError } from '../../../values/errors.ts'
import { isRow, type Query, type Row, rowsOf } from './database.ts'

type Call = (...args: unknown[]) => unknown

function methodOf(value: unknown, name: string): Call | undefined {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  const method: unknown = Reflect.get(value, name)
  return typeof method === 'function' ? (...args) => Reflect.apply(method, value, args) : undefined
}

/** @throws TransactionMismatch */
export function queryOf(tx: unknown): Query {
  const call = callOf(tx)
  if (call === undefined) {
    throw new MillpondError(
      'TransactionMismatch',
      'tx takes a transaction of postgres.js, pg, Kysely or Drizzle, or a function (text, params) => rows',
    )
  }
  return async (text, params): Promise<Row[]> => rowsOf(await call(text, params))
}

function callOf(tx: unknown): ((text: string, params: readonly unknown[]) => unknown) | undefined {
  const unsafe = methodOf(tx, 'unsafe')
  if (unsafe !== undefined) {
    // The pool itself has no savepoint: each of its queries goes to whichever connection is free.
    if (methodOf(tx, 'savepoint') === undefined) return undefined
    return (text, params) => unsafe(text, [...params])
  }
  if (typeof tx === 'function') return (text, params) => tx(text, [...params])
  if (!isRow(tx)) return undefined
  const execute = methodOf(tx, 'executeQuery')
  if (execute !== undefined) {
    if (tx.isTransaction !== true) return undefined
    return (text, params) => execute(compiled(text, params))
  }
  // Drizzle keeps the client's own transaction in its session.
  if (isRow(tx.session) && 'client' in tx.session) return methodOf(tx, 'rollback') && callOf(tx.session.client)
  const query = methodOf(tx, 'query')
  // A pg Pool, or a client that belongs to nobody.
  if (query === undefined || 'totalCount' in tx) return undefined
  return (text, params) => query(text, [...params])
}

let queries = 0

/** What Kysely's `CompiledQuery.raw` makes. */
function compiled(sql: string, parameters: readonly unknown[]) {
  return {
    sql,
    parameters,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: `millpond_${++queries}` },
  }
}
