import type { TransactionQuery } from '../../store.ts'
import type { Stored } from '../../values/encoding/stored.ts'
import type { Backoff, BackoffFunction } from '../../values/settings/backoff.ts'
import type { Duration } from '../../values/time/duration.ts'

/** How one step is tried. */
export interface StepOptions {
  /**
   * How often its function is called within the attempt of the job, and how long it waits between, such as
   * `{ attempts: 3, backoff: 'fixed' }`. Once, by default. Where the wait is longer than 5 s, the job is parked for it.
   */
  retry?: { attempts: number; backoff?: Exclude<Backoff, BackoffFunction> | undefined } | undefined
  /**
   * How long a call of its function may take; 1 ms to 24 days, no limit by default. Then its signal is aborted, and the call has failed.
   */
  timeout?: Duration | undefined
  /**
   * true: the function gets a query as `ctx.tx` is, and what it writes commits together with the step's record, or not at all. SQLite and
   * PostgreSQL; not in a worker with `transaction: true`, nor in an isolated handler. false by default.
   */
  transaction?: boolean | undefined
}

/** How a job waits for a signal. */
export interface WaitOptions {
  /** How long; 0 to 100 years, without an end by default. */
  timeout?: Duration | undefined
  /** A question to a person, shown with the job; 1 to 10,000 characters. */
  ask?: string | undefined
  /** What an answer looks like: a JSON Schema, shown with the question. It is not checked. */
  answer?: Readonly<Record<string, unknown>> | undefined
}

/** What a child job can be pushed with. */
export interface RunOptions {
  priority?: number | undefined
  delay?: Duration | undefined
  group?: string | undefined
  cost?: number | undefined
  attempts?: number | undefined
  timeout?: Duration | undefined
}

/** A queue to which a child can be pushed. */
export interface ChildQueue<Data> {
  readonly name: string
  push(data: Data, options: RunOptions & { id: string }): Promise<{ id: string }>
}

/**
 * What a handler can do in steps whose results outlive its attempt. The handler runs from its top at each attempt, and gets what it did
 * before from the store. So only what touches the world, or must stay the same, goes into a step. Names tell steps apart: 1 to 200
 * characters, without control characters; the second use of a name in an attempt gets `#2`, and so on. See docs/steps.md.
 *
 * All need a store with the capability `steps`, and a handler of single jobs.
 * @throws NotSupported, InvalidOption (a name, an option, a step inside a step), StepMismatch (the name was used for something else
 * before), StepsTooLarge, StaleAttempt and the other reasons of `signal`, `Store…`
 */
export interface Steps {
  /**
   * Runs the function once, and keeps its result with the job: the next attempt gets it from the store. If the process dies between the
   * function's effect and the record, it runs again: give what it calls an idempotency key (`ctx.once`).
   * @param run gets a signal that is aborted at the step's timeout, and when the attempt is over
   * @returns what it returned, as the store keeps it: encoded as a job's result is, 1 MiB at most, and decoded again
   * @throws what the function threw at its last call. If the handler fails with it, the next attempt calls the function again; if the
   * handler goes on, the failure is kept with what it writes next
   */
  step<Result>(
    name: string,
    run: (tx: TransactionQuery, signal: AbortSignal) => Result | Promise<Result>,
    options: StepOptions & { transaction: true },
  ): Promise<Stored<Result>>
  step<Result>(
    name: string,
    run: (signal: AbortSignal) => Result | Promise<Result>,
    options?: StepOptions & { transaction?: false | undefined },
  ): Promise<Stored<Result>>
  /**
   * Parks the job: it gives up its slot, holds no lease, counts no attempt, and goes on after so long. Below one second it waits here.
   * A handler whose job is parked is left where it waits, and its signal is aborted with `JobParked`; it is called again from its top. So
   * code behind a wait, `finally` included, does not run for a parked attempt: let go of what it holds at the signal.
   * @param duration 0 to 100 years, from the first time that the handler came here
   */
  sleep(name: string, duration: Duration): Promise<void>
  /**
   * Parks the job until `pond.signal(id, name, data)`. Signals that come early are kept; each wait takes one, in their order.
   * @param name of the signal
   * @returns its data
   * @throws SignalTimeout
   */
  waitFor<Data = unknown>(name: string, options?: WaitOptions): Promise<Data>
  /**
   * Pushes a job, parks this one until it has ended, and returns its result. Its id is made of the id of this job and the name, so it is
   * pushed once however often this handler runs.
   * @throws JobFailed, JobCancelled, JobUnknown (it ended, and its queue kept it no longer), as `push`
   */
  run<Data, Result = unknown>(name: string, queue: ChildQueue<Data>, data: Data, options?: RunOptions): Promise<Result>
  /**
   * A text that is the same in every attempt of the job, for APIs that take an idempotency key: made of the job's id and the name.
   */
  once(name: string): string
}

/** The function of a step: with a transaction, its query comes first. */
export type StepRun<Result> =
  | ((signal: AbortSignal) => Result | Promise<Result>)
  | ((tx: TransactionQuery, signal: AbortSignal) => Result | Promise<Result>)
