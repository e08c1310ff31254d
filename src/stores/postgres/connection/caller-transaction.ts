/**
 * What callers hand in as their transaction, each brought to one form: a function of text and parameters, which answers with one text.
 *
 * - postgres.js: the `sql` of `sql.begin(async (sql) => …)`
 * - `pg`: the client on which `begin` was run
 * - Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`
 * - Drizzle: the `tx` of `db.transaction(async (tx) => …)`
 * - any function `(text, params) => rows`, or `=> { rows }`
 *
 * The store's statements answer with one column of text, which no client changes by default. Columns are read by position: a client may
 * rename them. Where the client lets us, its type parsers and transforms are passed over.
 */
import { mismatch } from '../../transactions.ts'
import { isRow } from './database.ts'
import { AS_SENT } from './pg-client.ts'

type Call = (...given: unknown[]) => unknown

/** What of these clients we look at. */
type Client = Partial<Record<'unsafe' | 'savepoint' | 'executeQuery' | 'rollback' | 'query', Call>> & {
  isTransaction?: unknown
  session?: { client?: unknown } | null
}

/** A statement with one column of text at the most. @returns the first row's, null: none */
export type Ask = (text: string, params: readonly unknown[]) => Promise<string | null>

/** @throws TransactionMismatch */
export function askOf(tx: unknown): Ask {
  const call = callOf(tx)
  if (call !== undefined) return async (text, params) => textIn(await call(text, [...params]))
  throw mismatch('tx takes a transaction of postgres.js, pg, Kysely or Drizzle, or a function (text, params) => rows')
}

function callOf(tx: unknown): ((text: string, params: unknown[]) => unknown) | undefined {
  if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null) return undefined
  const client: Client = tx
  // The pool itself has no savepoint: each of its queries goes to whichever connection is free.
  if (client.unsafe) return client.savepoint && ((text, params) => raw(client.unsafe?.(text, params)))
  if (typeof tx === 'function') return (text, params) => tx(text, params)
  if (client.executeQuery) {
    return client.isTransaction === true ? (text, params) => client.executeQuery?.(compiled(text, params)) : undefined
  }
  // Drizzle keeps the client's own transaction in its session.
  if (client.session?.client) return client.rollback && callOf(client.session.client)
  // A pg Pool, or a client that belongs to nobody.
  if (!client.query || 'totalCount' in tx) return undefined
  // Others have a method of this name, too, which takes no object.
  if ('processID' in tx) return (text, params) => client.query?.({ text, values: params, ...AS_SENT })
  return (text, params) => client.query?.(text, params)
}

/** Of postgres.js: past its parsers and transforms. */
function raw(query: unknown): unknown {
  return isRow(query) && typeof query.raw === 'function' ? query.raw() : query
}

/** @throws TransactionMismatch */
function textIn(answer: unknown): string | null {
  const list = Array.isArray(answer) ? answer : isRow(answer) && Array.isArray(answer.rows) ? answer.rows : undefined
  if (list === undefined) throw mismatch('tx must answer each statement with its rows, or with { rows }')
  if (list.length === 0) return null
  const [cell = null] = isRow(list[0]) ? Object.values(list[0]) : []
  if (cell === null || typeof cell === 'string') return cell
  if (Buffer.isBuffer(cell)) return cell.toString()
  throw mismatch(
    'tx must answer with texts as the server sends them: its client turns values of the type text into others',
  )
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
