/**
 * The database of a connection. A server may refuse `SELECT` (it has fewer databases, or the user may not call it). The
 * client then goes on in database 0, without a word. So each new connection has to show that it is in the right one.
 *
 *   connected ──SELECT──► chosen
 *                 └─refused─► calls are rejected, and it is asked again each second
 */
import { setTimeout as pause } from 'node:timers/promises'
import { MillpondError } from '../../values/errors/errors.ts'
import { safeText } from '../../values/errors/safe-error.ts'
import { isPassing } from './errors.ts'
import type { Client } from './settings.ts'

/** Milliseconds. */
const RETRY_PAUSE = 1000
const POLL = 10

export class ChosenDatabase {
  readonly #client: Client
  readonly #where: string
  readonly #db: number
  #chosen: boolean
  #refusal: MillpondError | undefined
  /** Counts connections. */
  #connection = 0

  constructor(client: Client, where: string) {
    this.#client = client
    this.#where = where
    this.#db = 'nodes' in client ? 0 : (client.options.db ?? 0)
    this.#chosen = this.#db === 0
    if (this.#chosen) return
    client.on('ready', () => void this.#choose(++this.#connection))
    client.on('close', () => {
      this.#connection++
      this.#chosen = false
    })
    if (client.status === 'ready') void this.#choose(this.#connection)
  }

  /** Whether the present connection is in the right database. */
  get chosen(): boolean {
    return this.#chosen
  }

  /** @throws StoreUnavailable where the server refuses it, and an error that passes where it has not answered yet */
  check(): void {
    if (this.#chosen) return
    throw this.#refusal ?? new Error("the connection isn't ready: its database is not chosen yet")
  }

  /** Resolves when the server has answered. @throws as `check`, also where it has not in so many ms */
  async settled(timeout: number): Promise<void> {
    const until = performance.now() + timeout
    while (!this.#chosen && this.#refusal === undefined && performance.now() < until) await pause(POLL)
    this.check()
  }

  async #choose(connection: number): Promise<void> {
    if ('nodes' in this.#client) return
    let refusal: MillpondError | undefined
    try {
      await this.#client.select(this.#db)
    } catch (error) {
      // The next connection asks anew.
      if (isPassing(error)) return
      const message =
        `Redis at ${this.#where} refuses database ${this.#db}: ${safeText(error)}; use one that it has, and a user ` +
        'who may call SELECT'
      refusal = new MillpondError('StoreUnavailable', message, { cause: error })
    }
    if (connection !== this.#connection) return
    this.#refusal = refusal
    this.#chosen = refusal === undefined
    if (refusal === undefined) return
    const again = (): void => {
      if (connection === this.#connection && this.#client.status === 'ready') void this.#choose(connection)
    }
    setTimeout(again, RETRY_PAUSE).unref()
  }
}
