/**
 * Tells the store the settings of queues, each only when they are new. Applications make a queue object wherever they
 * need one, for instance in each request; only the first of several with the same settings makes a call.
 */

import type { Store } from '../store.ts'
import type { QueueSettings, SettingName } from '../values/settings/settings.ts'

/** Queues that are remembered; then all are forgotten, and told once more. */
const MAX_QUEUES = 10_000

interface Told {
  /** The settings, as a text that can be compared. */
  text: string
  /** Settles when the store has them; undefined: it has. */
  telling: Promise<void> | undefined
}

export class KnownSettings {
  readonly #store: Store
  readonly #onOverridden: (queue: string, settings: readonly SettingName[]) => void
  readonly #told = new Map<string, Told>()

  /** @param onOverridden called with what an operator's value keeps out of effect */
  constructor(store: Store, onOverridden: (queue: string, settings: readonly SettingName[]) => void) {
    this.#store = store
    this.#onOverridden = onOverridden
  }

  /** The queue was removed: its settings are told again. */
  forget(queue: string): void {
    this.#told.delete(queue)
  }

  /** @returns undefined: the store has them already. Rejects as `configure` does; the next call then tries again. */
  tell(settings: QueueSettings): Promise<void> | undefined {
    const { queue } = settings
    const text = JSON.stringify(settings)
    const known = this.#told.get(queue)
    if (known?.text === text) return known.telling
    const telling = this.#store.operations.configure(settings).then((overridden) => {
      if (overridden.length > 0) this.#onOverridden(queue, overridden)
    })
    const told: Told = { text, telling }
    if (this.#told.size >= MAX_QUEUES) this.#told.clear()
    this.#told.set(queue, told)
    telling.then(
      () => {
        told.telling = undefined
      },
      () => {
        if (this.#told.get(queue) === told) this.#told.delete(queue)
      },
    )
    return telling
  }
}
