/**
 * Tells the store how attempts ended, in groups: what ends while a group is being written goes with the next one.
 * A group that the store fails to take is sent again, ever more slowly, for as long as the worker lives: the work is done,
 * and if the lease runs out meanwhile, the fence makes a late word harmless.
 */
import type { Attempt } from './attempt.ts'
import { type MillpondError, storeError } from './errors.ts'
import type { Completion, Encoded, FailOutcome, Failure, HoldOutcome, JobError, Store } from './store.ts'

export type Ending =
  | { kind: 'complete'; attempt: Attempt; result: Encoded | null; value: unknown }
  | { kind: 'fail'; attempt: Attempt; error: JobError; delay: number | null }
  | { kind: 'release'; attempt: Attempt }

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

  get pending(): boolean {
    return this.#writing || this.#endings.length > 0
  }

  /** Sends what there is, unless a group is under way: then it goes right after. */
  flush(): void {
    if (this.#writing || this.#timer !== undefined || this.#endings.length === 0) return
    const group = this.#endings
    this.#endings = []
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
    const completions: Completion[] = []
    const failures: Failure[] = []
    const completed: Ending[] = []
    const failed: Ending[] = []
    const released: Ending[] = []
    for (const ending of group) {
      const { claimed: claim } = ending.attempt
      const { id, fence } = claim
      if (ending.kind === 'complete') {
        completions.push({ id, fence, claim, result: ending.result })
        completed.push(ending)
      } else if (ending.kind === 'fail') {
        failures.push({ id, fence, claim, error: ending.error, delay: ending.delay })
        failed.push(ending)
      } else released.push(ending)
    }
    const calls: Promise<void>[] = []
    const tell = (endings: Ending[], answer: Promise<(HoldOutcome | FailOutcome)[]>) => {
      calls.push(
        answer.then((outcomes) => {
          for (const [index, ending] of endings.entries()) this.#settled(ending, outcomes[index] ?? 'stale')
          // Settled ones must not be sent again if another of the three calls fails.
          endings.length = 0
        }),
      )
    }
    if (completed.length > 0) tell(completed, this.#store.complete(this.#queue, completions))
    if (failed.length > 0) tell(failed, this.#store.fail(this.#queue, failures))
    if (released.length > 0) {
      const holds = released.map(({ attempt: { claimed: claim } }) => ({ id: claim.id, fence: claim.fence, claim }))
      tell(released, this.#store.release(this.#queue, holds))
    }
    const results = await Promise.allSettled(calls)
    group.length = 0
    group.push(...completed, ...failed, ...released)
    const failure = results.find((result) => result.status === 'rejected')
    if (failure !== undefined) throw failure.reason
  }

  #failed(group: Ending[], error: unknown): void {
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
    this.#writing = false
    if (this.#endings.length > 0) this.flush()
    else for (const resolve of this.#idle.splice(0)) resolve()
  }
}
