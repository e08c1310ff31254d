/** A transaction on one connection. When the connection is lost, every call rejects, also those under way: no client sees to that. */
import type { Cells, Query, Session } from './database.ts'

/** The connection while the transaction is open, whichever client it is of. */
interface Held {
  query: Query
  /** Several statements in one message. @returns the rows of the last one */
  run(script: string): Promise<Cells[]>
  /** Sent with the end of the transaction. */
  afterwards: string
  /** @param failed whatever state it is in, it must not be used again: the transaction may still be open there */
  release(failed: boolean): unknown
}

/** @param gone rejects when the connection is lost */
export function sessionOn({ query, run, afterwards, release }: Held, gone: Promise<never>): Session {
  let lost: unknown
  gone.catch((error: unknown) => {
    lost = error
  })

  async function answered<T>(ask: () => Promise<T>): Promise<T> {
    if (lost !== undefined) throw lost
    const answer = ask()
    // What comes of it once the connection is given up is nobody's concern.
    answer.catch(() => {})
    return Promise.race([answer, gone])
  }

  let ended = false
  return {
    query: (text, params) => answered(() => query(text, params)),
    run: (script) => answered(() => run(script)),
    async end(how) {
      if (ended) return
      ended = true
      let failed = true
      try {
        await answered(() => run(`${how}; ${afterwards}`))
        failed = false
      } finally {
        await release(failed)
      }
    },
  }
}
