/**
 * Calls that processes share: each is a job of a queue, so whatever holds for jobs holds for them.
 *
 *   the first caller of a key pushes ──► one live job per key ──► a worker, in whichever process, makes the call
 *   callers of other processes push too and get the id of that job; all wait for its result
 *
 * The process that makes the call may die: its lease ends, and another process makes it. A call that fails is not made again: its error is
 * the result. A caller that gets the id of a job from before a clear waits for the end of that job, and pushes again.
 */

import { createHash } from 'node:crypto'
import type { Millpond } from '../pond/millpond.ts'
import type { Queue } from '../pond/queue.ts'
import { isMillpondError, isNotDecodable } from '../values/errors/errors.ts'
import { isError } from '../values/runtime/realms.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { LONGEST_TIMER } from '../values/time/duration.ts'
import { Flights } from './flights.ts'
import { KnownJobs } from './known-jobs.ts'

/** How often a call is begun: again only if the process that made it has died. */
const MAX_ATTEMPTS = DEFAULTS.coalesce.attempts
/** Calls that one process makes at once. */
const MAX_CALLS = DEFAULTS.coalesce.concurrency
/** How long answers stay in the store, for processes that have not looked yet. */
const KEEP = DEFAULTS.coalesce.keep
/** A dead holder is noticed within a third of the time limit, so that there is time for another call; ms. */
const LEASE = { min: DEFAULTS.coalesce.minLease, max: DEFAULTS.coalesce.maxLease }
const MAX_KEY_BYTES = 255

/** The input as it travels; `undefined` by being absent. */
interface JobData<In> {
  input?: In
}

interface Settings<In, Out> {
  /** The same in every process, of one function only. */
  name: string
  /** Time limit of each call, in ms. */
  timeout: number
  fn: (input: In, context: { signal: AbortSignal }) => Out | PromiseLike<Out>
}

export class SharedCalls<In, Out> {
  readonly #pond: Millpond
  readonly #queue: Queue<JobData<In>>
  /** The calls that this process makes, by job; their time limit is here, since a job that is late would be tried again. */
  readonly #calls: Flights<Out>
  readonly #known: KnownJobs

  constructor(pond: Millpond, { name, timeout, fn }: Settings<In, Out>) {
    this.#pond = pond
    const lease = Math.min(LEASE.max, Math.max(LEASE.min, Math.ceil(timeout / DEFAULTS.coalesce.leasesPerTimeout)))
    this.#queue = pond.queue<JobData<In>>(`coalesce/${name}`, {
      lease,
      keep: { done: KEEP, dead: KEEP },
      retry: { attempts: MAX_ATTEMPTS },
    })
    this.#calls = new Flights(timeout)
    // Twice what all attempts of a job take: they also wait for a worker.
    this.#known = new KnownJobs(Math.min(LONGEST_TIMER, 2 * MAX_ATTEMPTS * (timeout + lease)))
    this.#queue.work(
      async ({ id, key, data }, { signal, giveUp }) => {
        const leave = this.#known.enter(key ?? '', Promise.resolve(id))
        try {
          return await this.#calls.join(id, (aborted) => fn(data.input as In, { signal: aborted }), signal)
        } catch (error) {
          return giveUp(error)
        } finally {
          leave()
        }
      },
      { concurrency: MAX_CALLS, window: 0 },
    )
  }

  /** Calls of the function that this process has made. */
  get calls(): number {
    return this.#calls.counts.flights
  }

  /**
   * The answer to the shared call of the key, which is begun if no process has one under way.
   * @param signal aborted when nobody in this process waits any more. A shared call that this process began is then cancelled, and
   * processes that still wait for it begin another
   * @throws what the function threw, as a copy; TimedOut; and what `push` and `result` of a pond throw
   */
  async get(callKey: string, input: In, signal: AbortSignal): Promise<Out> {
    const key = jobKey(callKey)
    const { clears } = this.#known
    const data = input === undefined ? {} : { input }
    for (;;) {
      signal.throwIfAborted()
      const pushed = this.#queue.push(data, { key })
      const leave = this.#known.enter(
        key,
        pushed.then(idOf, () => undefined),
      )
      try {
        const { id, existing } = await pushed
        if (!existing || !(await this.#known.isOutdated(key, id, clears)))
          return await this.#answer(id, signal, existing)
        await this.#ended(id, signal)
      } catch (error) {
        if (signal.aborted || !isGone(error)) throw thrown(error)
      } finally {
        leave()
      }
    }
  }

  /** Callers that come with the key from now on get no answer of a job that this process has under way. */
  clear(key: string): void {
    this.#known.clear(jobKey(key))
  }

  clearAll(): void {
    this.#known.clearAll()
  }

  async #answer(id: string, signal: AbortSignal, existing: boolean): Promise<Out> {
    try {
      return (await this.#pond.result(id, { signal })) as Out
    } catch (error) {
      // If the store cannot be reached, the call goes on, and its answer is dropped.
      if (signal.aborted && !existing) this.#pond.cancel(id).catch(() => {})
      throw error
    }
  }

  /** Resolves when the job is over, whatever it came to. */
  async #ended(id: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#pond.result(id, { signal })
    } catch (error) {
      const ended = isMillpondError(error, 'JobFailed') || isNotDecodable(error)
      if (signal.aborted || !(ended || isGone(error))) throw error
    }
  }
}

const idOf = ({ id }: { id: string }): string => id

/** The shared call has ended without an answer: the process that began it cancelled it, or its answer was kept no longer. */
const isGone = (error: unknown): boolean =>
  isMillpondError(error, 'JobCancelled') || isMillpondError(error, 'JobUnknown')

/** What the function threw, from what the job says. */
const thrown = (error: unknown): unknown =>
  isMillpondError(error, 'JobFailed') && isError(error.cause) ? error.cause : error

/** Keys of calls may be of any length and hold anything. */
export function jobKey(key: string): string {
  const plain = key.length > 0 && Buffer.byteLength(key) < MAX_KEY_BYTES && key.isWellFormed() && !key.includes('\0')
  return plain ? `=${key}` : createHash('sha256').update(key, 'utf16le').digest('hex')
}
