/**
 * Tells the store how attempts ended, in groups: what ends while a group is being written goes with the next one.
 * A group that the store fails to take is sent again, ever more slowly, for as long as the worker lives: the work is done,
 * and if the lease runs out meanwhile, the fence makes a late word harmless.
 */
import type { Attempt } from './attempt.ts'
import { type MillpondError, storeError } from './errors.ts'
import type { Completion, Encoded, FailOutcome, Failure, Hold, HoldOutcome, JobError, Store } from './store.ts'

/** How an attempt ended, as the store is told. */
export type Ending = Completed | Failed | Released
interface Completed extends Completion {
  kind: 'complete'
  attempt: Attempt
  value: unknown
}
interface Failed extends Failure {
  kind: 'fail'
  attempt: Attempt
}
interface Released extends Hold {
  kind: 'release'
  attempt: Attempt
}

export function completed(attempt: Attempt, result: Encoded | null, value: unknown): Ending {
  const { claimed: claim } = attempt
  return { kind: 'complete', attempt, id: claim.id, fence: claim.fence, claim, result, value }
}

export function failed(attempt: Attempt, error: JobError, delay: Failure['delay']): Ending {
  const { claimed: claim } = attempt
  return { kind: 'fail', attempt, id: claim.id, fence: claim.fence, claim, error, delay }
}

export function released(attempt: Attempt): Ending {
  const { claimed: claim } = attempt
  return { kind: 'release', attempt, id: claim.id, fence: claim.fence, claim }
}

/** The handler's own transaction has told the store already. */
export interface Committed {
  kind: 'committed'
  attempt: Attempt
  value: unknown
  outcome: HoldOutcome
}

export type Settled = (ending: Ending, outcome: HoldOutcome | FailOutcome) => void

const FIRST_RETRY = 50
const LAST_RETRY = 5000

export class Settler {
  readonly #store: Store
  readonly #queue: string
  readonly #settled: Settled
  readonly #trouble: (error: MillpondError) => void
  #endings: Ending[] = []
  /** The group under way. */
  #group: Ending[] = []
  #writing = false
  #retryIn = FIRST_RETRY
  #timer: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []

  constructor(store: Store, queue: string, settled: Settled, trouble: (error: MillpondError) => void) {
    this.#store = store
    this.#queue = queue
    this.#settled = settled
    this.#trouble = trouble
  }

  /** Takes note; `flush` sends. */
  add(ending: Ending): void {
    this.#endings.push(ending)
  }

  /** Whose endings are not known to the store yet. */
  get attempts(): Attempt[] {
    return [...this.#group, ...this.#endings].map(({ attempt }) => attempt)
  }

  get pending(): boolean {
    return this.#writing || this.#endings.length > 0
  }

  /** Sends what there is, unless a group is under way: then it goes right after. */
  flush(): void {
    if (this.#writing || this.#timer !== undefined || this.#endings.length === 0) return
    const group = this.#endings
    this.#endings = []
    this.#group = group
    this.#writing = true
    this.#write(group).then(
      () => {
        this.#retryIn = FIRST_RETRY
        this.#next()
      },
      (error: unknown) => this.#failed(group, error),
    )
  }

  /** Resolves when nothing is left to tell. */
  flushed(): Promise<void> {
    if (!this.pending) return Promise.resolve()
    this.flush()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Forgets what could not be told; leases will run out instead. */
  abandon(): number {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const count = this.#endings.length
    this.#endings = []
    for (const resolve of this.#idle.splice(0)) resolve()
    return count
  }

  async #write(group: Ending[]): Promise<void> {
    const completions: Completed[] = []
    const failures: Failed[] = []
    const releases: Released[] = []
    for (const ending of group) {
      if (ending.kind === 'complete') completions.push(ending)
      else if (ending.kind === 'fail') failures.push(ending)
      else releases.push(ending)
    }
    const calls: Promise<void>[] = []
    const untold: Ending[] = []
    const tell = (endings: Ending[], answer: Promise<(HoldOutcome | FailOutcome)[]>) => {
      const told = (outcomes: (HoldOutcome | FailOutcome)[]) => {
        let index = 0
        for (const ending of endings) this.#settled(ending, outcomes[index++] ?? 'stale')
      }
      const failed = (error: unknown) => {
        untold.push(...endings)
        throw error
      }
      calls.push(answer.then(told, failed))
    }
    if (completions.length > 0) tell(completions, this.#store.complete(this.#queue, completions))
    if (failures.length > 0) tell(failures, this.#store.fail(this.#queue, failures))
    if (releases.length > 0) tell(releases, this.#store.release(this.#queue, releases))
    const results = await Promise.allSettled(calls)
    group.length = 0
    group.push(...untold)
    const failure = results.find((result) => result.status === 'rejected')
    if (failure !== undefined) throw failure.reason
  }

  #failed(group: Ending[], error: unknown): void {
    this.#group = []
    this.#writing = false
    const known = storeError(error, 'settling')
    this.#trouble(known)
    if (known.code === 'Closed') {
      this.abandon()
      return
    }
    this.#endings.unshift(...group)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.flush()
    }, this.#retryIn)
    this.#retryIn = Math.min(this.#retryIn * 2, LAST_RETRY)
  }

  #next(): void {
    this.#group = []
    this.#writing = false
    if (this.#endings.length > 0) this.flush()
    else for (const resolve of this.#idle.splice(0)) resolve()
  }
}
