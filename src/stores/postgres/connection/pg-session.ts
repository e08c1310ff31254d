/**
 * A transaction on a connection of the pool. The store's own statements have a deadline. A handler's statement may take as long as it
 * likes, unless the connection is dead: now and then another connection asks the server whether it still works on the statement.
 */
import { isError } from '../../../values/runtime/realms.ts'
import { type Cells, type Row, rowsOf, type Session } from './database.ts'
import { AS_SENT, cellsOf, type PgClient, type PgStatement } from './pg-client.ts'
import { sessionOn } from './session.ts'

interface PgSessionOptions {
  /** As after `begin` in SQL. */
  mode: string
  /** What holds for the connection again after the transaction, whatever the handler has set; empty: nothing was set. */
  settings: string
  /** Ms, of the store's own statements, and between looks at a handler's; undefined: none. */
  timeout: number | undefined
  /** Whether the server still works on the handler's statement. True as well if that cannot be known. */
  alive: () => Promise<boolean>
}

export async function pgSession(client: PgClient, options: PgSessionOptions): Promise<Session> {
  const { mode, settings, timeout, alive } = options
  const gone = Promise.withResolvers<never>()
  // Nobody else listens while it is out of the pool, and an error that nobody hears ends the process.
  client.on('error', gone.reject)

  async function ask(statement: PgStatement): Promise<unknown> {
    try {
      return await client.query(statement)
    } catch (error) {
      if (isError(error) && error.message === 'Query read timeout') gone.reject(error)
      throw error
    }
  }

  async function query(text: string, params: readonly unknown[]): Promise<Row[]> {
    let silent = 0
    const look = async () => {
      silent = (await alive()) ? 0 : silent + 1
      // Once may be by chance: the answer is on its way.
      if (silent > 1)
        gone.reject(new Error('Connection terminated: the server does not know of the statement any more'))
    }
    const looks = timeout === undefined ? undefined : setInterval(() => void look(), timeout).unref()
    try {
      return rowsOf(await ask({ text, values: [...params], queryMode: 'extended' }))
    } finally {
      clearInterval(looks)
    }
  }

  function release(failed: boolean): void {
    client.removeListener('error', gone.reject)
    client.release(failed)
  }

  const run = async (text: string): Promise<Cells[]> => cellsOf(await ask({ text, ...AS_SENT, query_timeout: timeout }))
  const session = sessionOn({ query, run, afterwards: settings, release }, gone.promise)
  try {
    // The deadline of the store's calls is none of the handler's.
    await session.run(`begin ${mode}; ${settings === '' ? '' : 'set local statement_timeout to default'}`)
  } catch (error) {
    release(true)
    throw error
  }
  return session
}
