/** What the operations of one open store share. */
import { Calls } from './connection/calls.ts'
import type { Database } from './connection/database.ts'
import { apart, Lanes, type Parts, type Sent } from './held.ts'
import { Notifier } from './notifier.ts'
import { type Pushes, pushesOf } from './pushes.ts'
import type { Settings } from './settings.ts'

export class StoreContext {
  readonly calls: Calls
  readonly notifier: Notifier
  readonly pushes: Pushes
  readonly #lanes: Lanes<Sent, unknown>
  /** Settles when all that was recorded here is written: calls on several connections overtake each other. */
  recorded: Promise<unknown> = Promise.resolve()

  /** @param polling ms between looks; undefined: it listens */
  constructor(
    database: Database,
    { schema, deadline }: Settings,
    polling: number | undefined,
    clock: (() => number) | undefined,
  ) {
    this.calls = new Calls(database, schema, deadline, clock)
    this.notifier = new Notifier(this.calls, polling)
    this.pushes = pushesOf(this.calls, this.notifier)
    this.#lanes = new Lanes(
      this.calls,
      () => [],
      ([call, given], lane, left) => this.calls.alone(call, given, lane, left),
    )
  }

  /** As `calls.answer`, for what may have to wait for another transaction: see `apart`. */
  apart<Item, Answer, Out>(items: readonly Item[], parts: Parts<Item, Answer, Out>): Promise<Out[]> {
    return apart(this.calls, this.#lanes, items, parts)
  }

  /** A call of one item. */
  async one<Answer>(...call: Sent): Promise<Answer> {
    const [answer] = await this.apart([call], { sent: () => call, read: (given: Answer) => [given] })
    return answer as Answer
  }
}
