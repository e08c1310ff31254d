/**
 * A transaction on a connection of the pool. The store's own statements on it have a deadline. A handler's may take as long as they like,
 * but not because the connection is dead without anybody having said so: every so often the server is asked, over
 * another connection, whether it is still at work on it.
 */
import { type Row, rowsOf, type Session } from './database.ts'
import { lastRowsOf, type PgClient } from './pg-client.ts'

export interface PgSessionOptions {
  /** As after `begin` in SQL. */
  mode: string
  /** Sent with the end of the transaction: what holds for the connection again, whatever the handler has set. */
  session: string | undefined
  /** Ms, of the store's own statements, and between looks at a handler's; undefined: none. */
  timeout: number | undefined
  /** Whether the server still works on the handler's statement, or that cannot be known. */
  alive: () => Promise<boolean>
}

export async function pgSession(client: PgClient, options: PgSessionOptions): Promise<Session> {
  const { mode, session, timeout, alive } = options
  let lost: Error | undefined
  const gone = Promise.withResolvers<never>()
  gone.promise.catch(() => {})
  // Nobody else listens while it is out of the pool, and an error that nobody hears ends the process.
  const hear = (error: Error) => {
    lost ??= error
    gone.reject(error)
  }
  client.on('error', hear)

  /** An answer, or the end of the connection. */
  async function answered(ask: () => Promise<unknown>): Promise<unknown> {
    if (lost !== undefined) throw lost
    const answer = ask()
    // What comes of it once the connection is given up is nobody's concern.
    answer.catch(() => {})
    try {
      return await Promise.race([answer, gone.promise])
    } catch (error) {
      if (error instanceof Error && error.message === 'Query read timeout') hear(error)
      throw error
    }
  }

  async function query(text: string, params: readonly unknown[]): Promise<Row[]> {
    let silent = 0
    const look = async () => {
      silent = (await alive()) ? 0 : silent + 1
      // Once may be by chance: the answer is on its way.
      if (silent > 1) hear(new Error('Connection terminated: the server does not know of the statement any more'))
    }
    const looks = timeout === undefined ? undefined : setInterval(() => void look(), timeout).unref()
    try {
      return rowsOf(await answered(() => client.query({ text, values: [...params], queryMode: 'extended' })))
    } finally {
      clearInterval(looks)
    }
  }

  async function run(text: string): Promise<Row[]> {
    return lastRowsOf(await answered(() => client.query({ text, query_timeout: timeout })))
  }

  let ended = false
  async function end(how: 'commit' | 'rollback'): Promise<void> {
    if (ended) return
    ended = true
    let failed = true
    try {
      await run(session === undefined ? how : `${how}; ${session}`)
      failed = false
    } finally {
      client.removeListener('error', hear)
      // Whatever state it is in, it must not go back with a transaction open.
      client.release(failed)
    }
  }

  try {
    // The deadline of the store's calls is none of the handler's.
    await run(session === undefined ? `begin ${mode}` : `begin ${mode}; set local statement_timeout to default`)
  } catch (error) {
    client.removeListener('error', hear)
    client.release(true)
    throw error
  }
  return { query, run, end }
}
