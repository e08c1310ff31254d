/**
 * Actions over HTTP, for the log that the store keeps. Programs may call the service at any rate, so what the same caller
 * does with the same queue within some seconds is one entry.
 */
import { actionDone } from '../pond/actions.ts'
import type { Millpond } from '../pond/millpond.ts'
import type { ActionEvent } from '../values/jobs/events.ts'
import { clientOf } from '../web/permits.ts'
import { bearerToken, Tokens } from '../web/tokens.ts'

/** Milliseconds that an entry is gathered for, and how many are at once. */
const GATHERED = 5000
const MOST = 1000

export type Acted = Omit<ActionEvent, 'who' | 'through' | 'count'> & { count?: number }

export class ActionsOverHttp {
  readonly #pond: Millpond
  readonly #tokens: Tokens
  readonly #gathered = new Map<string, ActionEvent>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<unknown> = Promise.resolve()

  constructor(pond: Millpond, tokens: readonly string[]) {
    this.#pond = pond
    this.#tokens = new Tokens(tokens)
  }

  acted(request: Request, action: Acted): void {
    const { count = 1, ...event } = action
    const who = this.#who(request)
    // What is about one thing alone is told of with the others of its kind.
    const key = JSON.stringify([who, event.action, event.queue])
    const known = this.#gathered.get(key)
    this.#gathered.set(
      key,
      known === undefined
        ? { who, through: 'http', count, ...event }
        : {
            ...{ who, through: 'http', action: event.action, queue: event.queue, count: known.count + count },
            // The steps of one bulk change.
            ...(event.detail !== undefined && event.detail === known.detail && { detail: event.detail }),
          },
    )
    if (this.#gathered.size >= MOST) this.#write()
    this.#timer ??= setTimeout(() => this.#write(), GATHERED).unref()
  }

  /** Writes what is left. */
  async close(): Promise<void> {
    this.#write()
    await this.#writing
  }

  #write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const events = [...this.#gathered.values()]
    this.#gathered.clear()
    this.#writing = Promise.all([this.#writing, ...events.map((event) => actionDone(this.#pond, event))])
  }

  #who(request: Request): string {
    const token = this.#tokens.indexOf(bearerToken(request))
    const client = clientOf(request) ?? 'unknown'
    return token === undefined ? client : `token ${token + 1}, ${client}`
  }
}
