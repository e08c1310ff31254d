/**
 * Takes exclude changes and reads of both stores: a job that a take moves is in neither store for a moment, and a change
 * must not miss it. Each call waits for those of the other kind that came before it, so none waits forever.
 */
import { MillpondError } from '../../values/errors/errors.ts'
import { within } from '../../values/time/within.ts'

/** Milliseconds. A take is repeated for as long as the durable store fails; a change gives up before. */
const PATIENCE = 10_000

export class Exclusion {
  readonly #takes = new Set<Promise<unknown>>()
  readonly #changes = new Set<Promise<unknown>>()

  take<T>(run: () => Promise<T>): Promise<T> {
    return entered(this.#takes, this.#changes.size === 0 ? run() : Promise.allSettled(this.#changes).then(run))
  }

  /** @throws StoreUnavailable: a take is under way, and the durable store does not answer */
  change<T>(run: () => Promise<T>): Promise<T> {
    return entered(this.#changes, this.#takes.size === 0 ? run() : over(this.#takes).then(run))
  }
}

async function over(takes: ReadonlySet<Promise<unknown>>): Promise<void> {
  if ((await within(PATIENCE, Promise.allSettled(takes))) !== undefined) return
  const message =
    'the spill store does not answer, and jobs are on their way from there; try again when it can be reached'
  throw new MillpondError('StoreUnavailable', message)
}

async function entered<T>(own: Set<Promise<unknown>>, running: Promise<T>): Promise<T> {
  own.add(running)
  try {
    return await running
  } finally {
    own.delete(running)
  }
}
