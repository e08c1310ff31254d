/**
 * Tells the store how attempts end, in batches: what ends while a batch is being written goes with the next one,
 * or beside it if it is much.
 * A batch that the store fails to take is sent again, ever more slowly, for as long as the worker lives: the work is done,
 * and if the lease runs out meanwhile, the fence makes a late ending harmless. An ending that the store refuses for good holds up no
 * other: another one is sent in its place. One that another transaction holds up is sent by itself, beside the others.
 */

import { isRefusal, splitting } from '../batch/splitting.ts'
import type { Endings, Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { FailOutcome, HoldOutcome, ReleaseOutcome } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import type { Attempt } from './attempt.ts'
import { substituteFor, tooManySteps, type Untold } from './ending.ts'

export type EndingOutcome = HoldOutcome | Exclude<FailOutcome, 'full'>
type Answer = ReleaseOutcome | FailOutcome
const WHAT = 'telling how attempts ended'

/** In milliseconds. */
const FIRST_RETRY = DEFAULTS.worker.firstRetry
const LAST_RETRY = DEFAULTS.worker.maxRetry
/** Until an ending is sent again whose job another transaction has. The others do not wait for it. */
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
  /** Endings that are sent by themselves. */
  readonly #held = new Set<Untold>()
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
    return [...[...this.#underWay].flat(), ...this.#held, ...this.#waiting].map(({ attempt }) => attempt)
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
    if (this.#isFlushed) return Promise.resolve()
    this.flush()
    return new Promise((resolve) => this.#flushed.push(resolve))
  }

  get #isFlushed(): boolean {
    return this.#underWay.size + this.#held.size + this.#waiting.length === 0
  }

  /** Forgets what could not be told; leases will run out instead. */
  abandon(): void {
    this.#isAbandoned = true
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#waiting = []
    this.#held.clear()
    for (const resolve of this.#flushed.splice(0)) resolve()
  }

  /** Never rejects. */
  async #write(batch: Untold[]): Promise<void> {
    const { operations } = this.#store
    const queue = this.#queue
    const left: Untold[] = []
    let failure: MillpondError | undefined
    const tell = async <Kind extends Untold>(
      endings: Kind[],
      call: (input: Endings<Kind>) => Promise<readonly Answer[]>,
    ) => {
      if (endings.length === 0) return
      const send = (items: readonly Kind[]) => call({ queue, items, deferred: true })
      const outcomes = await splitting<Kind, Answer>(endings, send, WHAT)
      for (const [index, ending] of endings.entries()) {
        const given = outcomes[index] ?? 'stale'
        const outcome = given === 'full' ? fullError(ending) : given
        if (outcome === 'held') void this.#writeAlone(ending, () => call({ queue, items: [ending] }))
        else if (!(outcome instanceof MillpondError)) this.#told(ending, outcome)
        else if (isRefusal(outcome)) this.#refused(ending, outcome)
        else {
          failure ??= outcome
          left.push(ending)
        }
      }
    }
    await Promise.all([
      tell(
        batch.filter((ending) => ending.kind === 'complete'),
        (input) => operations.complete(input),
      ),
      tell(
        batch.filter((ending) => ending.kind === 'fail'),
        (input) => operations.fail(input),
      ),
      tell(
        batch.filter((ending) => ending.kind === 'release'),
        (input) => operations.release(input),
      ),
    ])
    this.#underWay.delete(batch)
    if (failure !== undefined) this.#failed(left, failure)
    else {
      this.#retryIn = FIRST_RETRY
      this.#goOn()
    }
  }

  /** Never rejects. Where it waited in vain, the ending goes with the next batch. */
  async #writeAlone(ending: Untold, call: () => Promise<readonly Answer[]>): Promise<void> {
    this.#held.add(ending)
    const [given = 'stale'] = await splitting<Untold, Answer>([ending], call, WHAT)
    const outcome = given === 'full' ? fullError(ending) : given
    this.#held.delete(ending)
    if (!(outcome instanceof MillpondError)) this.#told(ending, outcome)
    else if (isRefusal(outcome)) this.#refused(ending, outcome)
    else if (outcome.code !== 'StoreBusy') return this.#failed([ending], outcome)
    else {
      this.#trouble(outcome)
      if (!this.#isAbandoned) this.#waiting.push(ending)
    }
    this.#goOn()
  }

  #goOn(): void {
    this.flush()
    if (this.#isFlushed) for (const resolve of this.#flushed.splice(0)) resolve()
  }

  /** Its substitute goes with the next batch. Without one, the worker lets go of the claim, and its lease runs out. */
  #refused(ending: Untold, error: MillpondError): void {
    this.#trouble(error)
    const substitute = this.#isAbandoned ? undefined : substituteFor(ending, error)
    if (substitute === undefined) this.#told(ending, 'stale')
    else this.#waiting.push(substitute)
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

/** What `full` means: of a failure, that there is no room for the dead job; of a park, that its entries are too many. */
const fullError = ({ kind, id }: Untold): MillpondError => (kind === 'release' ? tooManySteps(id) : noRoom())

const noRoom = (): MillpondError =>
  new MillpondError('StoreFull', 'the store has no room for a dead job; it is told again until there is')
