/**
 * Waits for jobs to finish. Bells make it quick. Reading the store once a second makes it certain, because a bell can be
 * missed. All awaited jobs are read in one call.
 */

import { Batcher } from '../batch/batcher.ts'
import type { Store } from '../store.ts'
import { decode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { errorFrom } from '../values/jobs/job.ts'
import type { Encoded, JobError, JobOutcome } from '../values/jobs/records.ts'
import { answersBeside } from '../values/operations/answered-beside.ts'
import { outcomesOf } from '../values/operations/outcomes.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

/** Milliseconds. */
const POLL_INTERVAL = DEFAULTS.producer.poll
/** The error of a timeout shows the job's last error, so the job is read once more, at most so many milliseconds before. */
const LAST_LOOK = 100
/** One call at a time, for all jobs asked for meanwhile. */
const ALL = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

type Waiter = PromiseWithResolvers<Encoded | null>

interface Awaited {
  waiters: Set<Waiter>
  /** The next call to the store asks for it. */
  asked: boolean
  /** The job's queue, once the job was read. */
  queue: string | undefined
  /** Of the last failed attempt, when the job was last read. */
  lastError: JobError | null
}

export class Results {
  readonly #store: Store
  readonly #waiters = new Map<string, Awaited>()
  /** Called when the first caller begins to wait, and when the last one has ended: bells are needed only between. */
  readonly #onChange: (waiting: boolean) => void
  /** Not unref'd: a caller waits for an answer. */
  #poll: NodeJS.Timeout | undefined
  readonly #lookups = new Batcher<string, JobOutcome | null | undefined>((ids) => this.#outcomes(ids), ALL)

  constructor(store: Store, onChange: (waiting: boolean) => void) {
    this.#store = store
    this.#onChange = onChange
  }

  /** @throws JobUnknown, JobFailed, JobCancelled, ParentFailed, ResultTimeout, PayloadNotDecodable, Closed, the signal's reason */
  async wait(id: string, timeout: number | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    signal?.throwIfAborted()
    const waiter: Waiter = Promise.withResolvers()
    let timer: NodeJS.Timeout | undefined
    let lastLook: NodeJS.Timeout | undefined
    if (timeout !== undefined) {
      timer = setTimeout(() => waiter.reject(late(id, timeout, this.#waiters.get(id)?.lastError ?? null)), timeout)
      lastLook = setTimeout(() => this.#look([id]), timeout - Math.min(LAST_LOOK, Math.ceil(timeout / 2)))
    }
    const abort = () => waiter.reject(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
      this.#add(id, waiter)
      this.#look([id])
      const result = await waiter.promise
      return result === null ? undefined : decode(result, `result of job ${id}`)
    } finally {
      clearTimeout(timer)
      clearTimeout(lastLook)
      signal?.removeEventListener('abort', abort)
      this.#remove(id, waiter)
    }
  }

  /** A worker of this process has completed the job, and the store knows: the job need not be read. */
  completed(id: string, result: Encoded | null): void {
    if (this.#waiters.size === 0) return
    for (const waiter of this.#waitersOf(id)) waiter.resolve(result)
  }

  /** A bell: these jobs, or any of the queue, may have finished. */
  finished(queue: string, ids: readonly string[] | undefined): void {
    if (this.#waiters.size === 0) return
    if (ids !== undefined) this.#look(ids)
    else {
      const concerned = [...this.#waiters].filter(([, job]) => job.queue === undefined || job.queue === queue)
      this.#look(concerned.map(([id]) => id))
    }
  }

  /** Settles the waits for finished jobs; the others reject with `Closed`. */
  async close(): Promise<void> {
    const ids = [...this.#waiters.keys()]
    try {
      let at = 0
      for await (const outcomes of outcomesOf(this.#store, ids)) {
        for (const outcome of outcomes) this.#found(ids[at++] ?? '', outcome)
      }
    } catch {
      // The waits reject with Closed; the error of the store comes from its own close.
    }
    const closed = new MillpondError('Closed', 'the pond was closed while a result was awaited; the job itself is safe')
    for (const { waiters } of this.#waiters.values()) for (const waiter of waiters) waiter.reject(closed)
  }

  #add(id: string, waiter: Waiter): void {
    const job = this.#waiters.get(id) ?? { waiters: new Set(), asked: false, queue: undefined, lastError: null }
    this.#waiters.set(id, job)
    job.waiters.add(waiter)
    if (this.#poll === undefined) {
      this.#poll = setInterval(() => this.#look(this.#waiters.keys()), POLL_INTERVAL)
      this.#onChange(true)
    }
  }

  #remove(id: string, waiter: Waiter): void {
    const job = this.#waiters.get(id)
    job?.waiters.delete(waiter)
    if (job?.waiters.size === 0) this.#waiters.delete(id)
    if (this.#waiters.size === 0 && this.#poll !== undefined) {
      clearInterval(this.#poll)
      this.#poll = undefined
      this.#onChange(false)
    }
  }

  #look(ids: Iterable<string>): void {
    for (const id of ids) {
      const job = this.#waiters.get(id)
      if (job === undefined || job.asked) continue
      job.asked = true
      this.#lookups.add(id, 0).then(
        (record) => {
          if (record !== undefined) this.#found(id, record)
        },
        (error: unknown) => {
          // After a passing error the next poll asks again; the caller's timeout bounds the wait.
          if (error instanceof MillpondError && error.retryable) return
          for (const waiter of this.#waitersOf(id)) waiter.reject(error)
        },
      )
    }
  }

  /** Undefined: it could not be looked for. */
  async #outcomes(ids: string[]): Promise<(JobOutcome | null | undefined)[]> {
    const awaited = ids.flatMap((id) => this.#waiters.get(id) ?? [])
    // A bell from now on may be news to this call.
    for (const job of awaited) job.asked = false
    // All waits may have ended meanwhile.
    if (awaited.length === 0) return []
    const found: (JobOutcome | null | undefined)[] = []
    try {
      for await (const outcomes of outcomesOf(this.#store, ids)) found.push(...outcomes)
    } catch (error) {
      const beside = answersBeside<JobOutcome>(error)
      if (beside === undefined && found.length === 0) throw error
      found.push(...(beside ?? []).map((outcome) => outcome ?? undefined))
    }
    return ids.map((_, at) => found[at])
  }

  #found(id: string, record: JobOutcome | null): void {
    const job = this.#waiters.get(id)
    if (job === undefined) return
    const failure = failureOf(id, record)
    if (failure !== undefined) for (const waiter of job.waiters) waiter.reject(failure)
    else if (record?.state === 'done') for (const waiter of job.waiters) waiter.resolve(record.result)
    else if (record !== null) {
      // Not finished: kept once for the job instead of told to each waiter, as thousands may wait for it.
      job.queue = record.queue
      job.lastError = record.error
    }
  }

  #waitersOf(id: string): Iterable<Waiter> {
    return this.#waiters.get(id)?.waiters ?? []
  }
}

function late(id: string, timeout: number, lastError: JobError | null): MillpondError {
  const message = `job ${id} did not finish within ${timeout} ms; it goes on`
  if (lastError === null) return new MillpondError('ResultTimeout', message, { id })
  const failed = `${message}. Its last attempt failed: the cause says why`
  return new MillpondError('ResultTimeout', failed, { id, thrown: errorFrom(lastError) })
}

/** Why there will be no result; undefined if there may be one. */
function failureOf(id: string, record: JobOutcome | null): MillpondError | undefined {
  if (record === null) {
    const message = `the store has no job ${id}: it never had, it was removed, or its queue's \`keep\` is over`
    return new MillpondError('JobUnknown', message, { id })
  }
  const { queue, state, error } = record
  if (state === 'cancelled' && error?.code === 'ParentFailed') {
    return new MillpondError('ParentFailed', `job ${id} was cancelled: ${error.message}`, { id, queue })
  }
  if (state === 'cancelled') return new MillpondError('JobCancelled', `job ${id} was cancelled`, { id, queue })
  if (state === 'dead') {
    const message = `job ${id} is dead after ${record.attempt} of ${record.attempts} attempts: ${error?.message ?? 'no error kept'}`
    return new MillpondError('JobFailed', message, { id, queue, ...(error && { thrown: errorFrom(error) }) })
  }
  return undefined
}
