/**
 * A connection of the pool, reserved. The store's own statements on it have a deadline. A handler's may take as long as they like,
 * but not because the connection is dead without anybody having said so: every so often the server is asked, over
 * another connection, whether it is still at work on it.
 */
import { type Row, rowsOf, type Session } from './database.ts'
import type { PgClient, PgStatement } from './pg-client.ts'

/**
 * @param timeout ms, of the store's own statements, and between looks at a handler's; undefined: none
 * @param alive whether the server still works for the process, or that cannot be known
 */
export function pgSession(
  client: PgClient,
  timeout: number | undefined,
  alive: (process: number | null | undefined) => Promise<boolean>,
): Session {
  let lost: Error | undefined
  const gone = Promise.withResolvers<never>()
  gone.promise.catch(() => {})
  // Nobody else listens while it is out of the pool, and an error that nobody hears ends the process.
  const hear = (error: Error) => {
    lost ??= error
    gone.reject(error)
  }
  client.on('error', hear)
  const limit = timeout === undefined ? {} : { query_timeout: timeout }

  /** An answer, or the end of the connection. */
  async function answered(answer: Promise<{ rows: unknown[] }>): Promise<Row[]> {
    // What comes of it once the connection is given up is nobody's concern.
    answer.catch(() => {})
    try {
      return rowsOf(await Promise.race([answer, gone.promise]))
    } catch (error) {
      if (isTimeout(error)) hear(error)
      throw error
    }
  }

  async function watched(statement: string | PgStatement): Promise<Row[]> {
    let silent = 0
    const look = async () => {
      silent = (await alive(client.processID)) ? 0 : silent + 1
      // Once may be by chance: the answer is on its way.
      if (silent > 1) hear(new Error('Connection terminated: the server does not know of the statement any more'))
    }
    const looks = timeout === undefined ? undefined : setInterval(() => void look(), timeout).unref()
    try {
      return await answered(client.query(statement))
    } finally {
      clearInterval(looks)
    }
  }

  const refuse = () => {
    if (lost !== undefined) throw lost
  }
  return {
    async query(text, params = []) {
      refuse()
      return watched({ text, values: [...params], queryMode: 'extended' })
    },
    async own(text, params = []) {
      refuse()
      return answered(client.query({ text, values: [...params], ...limit }))
    },
    async begin() {
      refuse()
      await answered(client.query({ text: 'begin', values: [], ...limit }))
    },
    async script(text) {
      refuse()
      await watched(text)
    },
    release() {
      client.removeListener('error', hear)
      client.release(lost ?? false)
    },
  }
}

function isTimeout(error: unknown): error is Error {
  return error instanceof Error && error.message === 'Query read timeout'
}
