/**
 * Tells the store how attempts end, in batches: what ends while a batch is being written goes with the next one,
 * or beside it if it is much.
 * A batch that the store fails to take is sent again, ever more slowly, for as long as the worker lives: the work is done,
 * and if the lease runs out meanwhile, the fence makes a late ending harmless.
 */

import type { Store } from '../store.ts'
import { type MillpondError, storeError } from '../values/errors/errors.ts'
import type { FailOutcome, HoldOutcome } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import type { Attempt } from './attempt.ts'
import type { Untold } from './ending.ts'

export type EndingOutcome = HoldOutcome | FailOutcome

/** In milliseconds. */
const FIRST_RETRY = DEFAULTS.worker.firstRetry
const LAST_RETRY = DEFAULTS.worker.maxRetry
/** Fewest endings that are sent beside a batch under way. At most two are: the store writes one while the worker prepares the next. */
const FEWEST_BESIDE_ANOTHER = DEFAULTS.worker.besideAnother

export class EndingBatches {
  readonly #store: Store
  readonly #queue: string
  readonly #told: (ending: Untold, outcome: EndingOutcome) => void
  readonly #trouble: (error: MillpondError) => void
  #waiting: Untold[] = []
  /**
   * The one that was added last, with its attempt. V8 drops the code compiled for a class when a full collection finds no instance, and
   * such a collection may come while the queue is empty. This one keeps the code for the next surge.
   */
  latest: Untold | undefined
  readonly #underWay = new Set<Untold[]>()
  #retryIn = FIRST_RETRY
  #retry: NodeJS.Timeout | undefined
  #isAbandoned = false
  #flushed: (() => void)[] = []

  /** @param told called with the store's outcome of each ending @param trouble called when the store failed to take an ending */
  constructor(
    store: Store,
    queue: string,
    told: (ending: Untold, outcome: EndingOutcome) => void,
    trouble: (error: MillpondError) => void,
  ) {
    this.#store = store
    this.#queue = queue
    this.#told = told
    this.#trouble = trouble
  }

  /** Takes note; `flush` sends. */
  add(ending: Untold): void {
    this.#waiting.push(ending)
    this.latest = ending
  }

  /** Whose endings are not known to the store yet. */
  get attempts(): Attempt[] {
    return [...[...this.#underWay].flat(), ...this.#waiting].map(({ attempt }) => attempt)
  }

  /** Fewest endings that are sent now. */
  get #fewest(): number {
    return [1, FEWEST_BESIDE_ANOTHER][this.#underWay.size] ?? Number.POSITIVE_INFINITY
  }

  /** Sends what there is. Beside a batch that is under way, a few endings wait for its answer. */
  flush(): void {
    if (this.#retry !== undefined || this.#waiting.length < this.#fewest) return
    const batch = this.#waiting
    this.#waiting = []
    this.#underWay.add(batch)
    void this.#write(batch)
  }

  /** Resolves when nothing is left to tell. */
  flushed(): Promise<void> {
    if (this.#underWay.size + this.#waiting.length === 0) return Promise.resolve()
    this.flush()
    return new Promise((resolve) => this.#flushed.push(resolve))
  }

  /** Forgets what could not be told; leases will run out instead. */
  abandon(): void {
    this.#isAbandoned = true
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#waiting = []
    for (const resolve of this.#flushed.splice(0)) resolve()
  }

  /** Never rejects. */
  async #write(batch: Untold[]): Promise<void> {
    const completions = batch.filter((ending) => ending.kind === 'complete')
    const failures = batch.filter((ending) => ending.kind === 'fail')
    const releases = batch.filter((ending) => ending.kind === 'release')
    const errors: unknown[] = []
    const left: Untold[] = []
    const tell = async <Kind extends Untold>(endings: Kind[], call: (endings: Kind[]) => Promise<EndingOutcome[]>) => {
      if (endings.length === 0) return
      try {
        const outcomes = await call(endings)
        for (const [index, ending] of endings.entries()) this.#told(ending, outcomes[index] ?? 'stale')
      } catch (error) {
        errors.push(error)
        left.push(...endings)
      }
    }
    await Promise.all([
      tell(completions, (endings) => this.#store.operations.complete({ queue: this.#queue, items: endings })),
      tell(failures, (endings) => this.#store.operations.fail({ queue: this.#queue, items: endings })),
      tell(releases, (endings) => this.#store.operations.release({ queue: this.#queue, items: endings })),
    ])
    this.#underWay.delete(batch)
    if (errors.length > 0) this.#failed(left, storeError(errors[0], 'telling how attempts ended'))
    else {
      this.#retryIn = FIRST_RETRY
      this.flush()
      if (this.#underWay.size + this.#waiting.length === 0) for (const resolve of this.#flushed.splice(0)) resolve()
    }
  }

  #failed(untold: Untold[], error: MillpondError): void {
    this.#trouble(error)
    if (error.code === 'Closed' || this.#isAbandoned) {
      this.abandon()
      return
    }
    this.#waiting.unshift(...untold)
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      this.flush()
    }, this.#retryIn)
    this.#retryIn = Math.min(this.#retryIn * 2, LAST_RETRY)
  }
}
