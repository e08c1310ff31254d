/** The settings that a queue object was opened with, until the store has them. */

import { type QueueSettings, setsNothing } from '../../values/settings/settings.ts'
import type { KnownSettings } from '../known-settings.ts'

export class UnsentSettings {
  readonly #known: KnownSettings
  /** undefined: the store knows them. */
  #settings: QueueSettings | undefined
  /** Settles when the store has been told. */
  #sending: Promise<void> | undefined

  constructor(known: KnownSettings, settings: QueueSettings) {
    this.#known = known
    this.#settings = setsNothing(settings) ? undefined : settings
  }

  /** What the store does not know yet. */
  get unsent(): QueueSettings | undefined {
    return this.#settings
  }

  /** Settles when the store knows them; undefined: it does already. After a failure the next call tries again. */
  send(): Promise<void> | undefined {
    if (this.#settings === undefined || this.#sending !== undefined) return this.#sending
    this.#sending = this.#known.tell(this.#settings)
    if (this.#sending === undefined) {
      this.#settings = undefined
      return undefined
    }
    // Pushes that wait for the settings are the next reactions of this promise, so that no later push overtakes them.
    this.#sending.then(
      () => {
        this.#sending = undefined
        this.#settings = undefined
      },
      () => {
        this.#sending = undefined
      },
    )
    return this.#sending
  }
}
