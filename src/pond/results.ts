/**
 * Waits for jobs to finish. Bells make it quick; a look at the store once a second makes it certain, since any bell can be missed.
 * All awaited jobs are looked up in one call.
 */

import { Batcher } from '../batch/batcher.ts'
import type { Encoded, JobError, JobRecord, Store } from '../store.ts'
import { decode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import { errorFrom } from '../values/job.ts'

const POLL = 1000
/** A time-out tells the job's last error: the job is looked at once more so many milliseconds before it, at most. */
const LAST_LOOK = 100
/** One call at a time, for whatever was asked for meanwhile. */
const ALL = { items: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

interface Waiter {
  resolve: (result: Encoded | null) => void
  reject: (error: unknown) => void
}

/** All who wait for one job. */
interface Awaited {
  waiters: Set<Waiter>
  /** The next call to the store asks for it. */
  asked: boolean
  /** The job's queue, once a look has told. */
  queue: string | undefined
  /** Of the last attempt that failed, as it was seen last. */
  lastError: JobError | null
}

export class Results {
  readonly #store: Store
  readonly #waiters = new Map<string, Awaited>()
  /** Tells whether anybody waits, so that bells are asked for only then. */
  readonly #onChange: (waiting: boolean) => void
  /** Not unref'd: somebody waits for an answer. */
  #poll: NodeJS.Timeout | undefined
  readonly #lookups = new Batcher<string, JobRecord | null | undefined>((ids) => this.#find(ids), ALL)

  constructor(store: Store, onChange: (waiting: boolean) => void) {
    this.#store = store
    this.#onChange = onChange
  }

  /** @throws JobUnknown, JobFailed, JobCancelled, ResultTimeout, PayloadNotDecodable, Closed, and what the signal holds */
  async wait(id: string, timeout: number | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    signal?.throwIfAborted()
    const waiter = Promise.withResolvers<Encoded | null>()
    const entry: Waiter = { resolve: waiter.resolve, reject: waiter.reject }
    let timer: NodeJS.Timeout | undefined
    let lastLook: NodeJS.Timeout | undefined
    if (timeout !== undefined) {
      timer = setTimeout(() => waiter.reject(late(id, timeout, this.#waiters.get(id)?.lastError ?? null)), timeout)
      lastLook = setTimeout(() => this.#look([id]), timeout - Math.min(LAST_LOOK, Math.ceil(timeout / 2)))
    }
    const abort = () => waiter.reject(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
      this.#add(id, entry)
      this.#look([id])
      const result = await waiter.promise
      return result === null ? undefined : decode(result, `result of job ${id}`)
    } finally {
      clearTimeout(timer)
      clearTimeout(lastLook)
      signal?.removeEventListener('abort', abort)
      this.#remove(id, entry)
    }
  }

  /** A worker of this process has completed the job, and the store has it: nobody here needs to look. */
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

  /** Tells those whose jobs have finished, and `Closed` to the others. */
  async close(): Promise<void> {
    const ids = [...this.#waiters.keys()]
    try {
      const records = ids.length === 0 ? [] : await this.#store.find(ids)
      for (const [index, id] of ids.entries()) this.#found(id, records[index] ?? null)
    } catch {
      // Whoever waits gets Closed instead; the store's own close tells what is wrong with it.
    }
    const closed = new MillpondError('Closed', 'the pond was closed while a result was awaited; the job itself is safe')
    for (const { waiters } of this.#waiters.values()) for (const waiter of waiters) waiter.reject(closed)
  }

  #add(id: string, waiter: Waiter): void {
    const job = this.#waiters.get(id)
    if (job === undefined)
      this.#waiters.set(id, { waiters: new Set([waiter]), asked: false, queue: undefined, lastError: null })
    else job.waiters.add(waiter)
    if (this.#poll === undefined) {
      this.#poll = setInterval(() => this.#look(this.#waiters.keys()), POLL)
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
        (record) => this.#found(id, record ?? null),
        (error: unknown) => {
          // A store that is only away for now is asked again by the poll; the caller's own timeout bounds the wait.
          if (error instanceof MillpondError && error.retryable) return
          for (const waiter of this.#waitersOf(id)) waiter.reject(error)
        },
      )
    }
  }

  async #find(ids: string[]): Promise<(JobRecord | null)[]> {
    const awaited = ids.flatMap((id) => this.#waiters.get(id) ?? [])
    // A bell that rings from now on may be news to this call.
    for (const job of awaited) job.asked = false
    // All may have been told meanwhile, or have left.
    return awaited.length === 0 ? [] : this.#store.find(ids)
  }

  #found(id: string, record: JobRecord | null): void {
    const job = this.#waiters.get(id)
    if (job === undefined) return
    const failure = failureOf(id, record)
    if (failure !== undefined) for (const waiter of job.waiters) waiter.reject(failure)
    else if (record?.state === 'done') for (const waiter of job.waiters) waiter.resolve(record.result)
    else if (record !== null) {
      // Nobody is told that it goes on: each who comes asks anew, and thousands may wait for one job.
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

/** Why there is no result, nor ever will be. */
function failureOf(id: string, record: JobRecord | null): MillpondError | undefined {
  if (record === null) {
    const message = `the store has no job ${id}: it never had, or its queue's \`keep\` is over`
    return new MillpondError('JobUnknown', message, { id })
  }
  const { queue, state, error } = record
  if (state === 'cancelled') return new MillpondError('JobCancelled', `job ${id} was cancelled`, { id, queue })
  if (state === 'dead') {
    const message = `job ${id} is dead after ${record.attempt} of ${record.attempts} attempts: ${error?.message ?? 'no error kept'}`
    return new MillpondError('JobFailed', message, {
      id,
      queue,
      ...(error === null ? {} : { thrown: errorFrom(error) }),
    })
  }
  return undefined
}
