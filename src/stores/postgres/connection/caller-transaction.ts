/**
 * What callers hand in as their transaction, each brought to one form: a function of text and parameters.
 *
 * - postgres.js: the `sql` of `sql.begin(async (sql) => …)`
 * - `pg`: the client on which `begin` was run
 * - Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`
 * - Drizzle: the `tx` of `db.transaction(async (tx) => …)`
 * - any function `(text, params) => rows`, or `=> { rows }`
 */
import { mismatch } from '../../transactions.ts'
import { type Query, rowsOf } from './database.ts'

type Call = (...given: unknown[]) => unknown

/** What of these clients we look at. */
type Client = Partial<Record<'unsafe' | 'savepoint' | 'executeQuery' | 'rollback' | 'query', Call>> & {
  isTransaction?: unknown
  session?: { client?: unknown } | null
}

/** @throws TransactionMismatch */
export function queryOf(tx: unknown): Query {
  const call = callOf(tx)
  if (call !== undefined) return async (text, params) => rowsOf(await call(text, [...params]))
  throw mismatch('tx takes a transaction of postgres.js, pg, Kysely or Drizzle, or a function (text, params) => rows')
}

function callOf(tx: unknown): ((text: string, params: unknown[]) => unknown) | undefined {
  if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null) return undefined
  const client: Client = tx
  // The pool itself has no savepoint: each of its queries goes to whichever connection is free.
  if (client.unsafe) return client.savepoint && ((text, params) => client.unsafe?.(text, params))
  if (typeof tx === 'function') return (text, params) => tx(text, params)
  if (client.executeQuery) {
    return client.isTransaction === true ? (text, params) => client.executeQuery?.(compiled(text, params)) : undefined
  }
  // Drizzle keeps the client's own transaction in its session.
  if (client.session?.client) return client.rollback && callOf(client.session.client)
  // A pg Pool, or a client that belongs to nobody.
  if (!client.query || 'totalCount' in tx) return undefined
  return (text, params) => client.query?.(text, params)
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
