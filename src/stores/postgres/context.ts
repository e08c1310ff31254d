/** What the operations of one open store share. */
import { Calls } from './connection/calls.ts'
import type { Database } from './connection/database.ts'
import { Notifier } from './notifier.ts'
import { type Pushes, pushesOf } from './pushes.ts'
import type { Settings } from './settings.ts'

export class StoreContext {
  readonly calls: Calls
  readonly notifier: Notifier
  readonly pushes: Pushes
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
  }
}
