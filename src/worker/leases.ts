/**
 * Keeps a worker's claims alive: all of them in one call, three times per lease, so that two calls may fail before one is lost.
 * The same call carries what handlers reported, and brings back which claims are over.
 */

import { isRefusal, splitting } from '../batch/splitting.ts'
import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { LONGEST_TIMER } from '../values/time/duration.ts'
import type { Attempt } from './attempt.ts'

/** How soon a report goes out, so that a handler that reports in a loop costs few calls. */
const REPORT_AFTER = DEFAULTS.worker.reportAfter
/** The same of lines of a log: most jobs end before, and their lines go with the ending. */
const LOG_AFTER = DEFAULTS.worker.logAfter

/** What lease renewal needs of its worker. */
export interface LeaseHolder {
  held(): Attempt[]
  lost(attempt: Attempt, reason: MillpondError): void
  trouble(error: MillpondError): void
}

export class Leases {
  readonly #store: Store
  readonly #queue: string
  readonly #holder: LeaseHolder
  /** Milliseconds, as the last claim had it; 0: nothing was claimed yet. */
  #lease = 0
  #timer: NodeJS.Timeout | undefined
  #report: NodeJS.Timeout | undefined
  #logged: NodeJS.Timeout | undefined

  constructor(store: Store, queue: string, holder: LeaseHolder) {
    this.#store = store
    this.#queue = queue
    this.#holder = holder
  }

  /** For how long the claims of the last answer hold: the queue's lease, which may have been changed. In milliseconds. */
  lasting(lease: number): void {
    if (lease === this.#lease) return
    // What is held by a shorter lease than the new one must not wait for a third of that.
    const held = this.#holder.held()
    this.#lease = lease
    clearInterval(this.#timer)
    this.#timer = setInterval(
      () => void this.extend(this.#holder.held()),
      Math.min(LONGEST_TIMER, Math.max(5, Math.floor(lease / DEFAULTS.worker.extensionsPerLease))),
    )
    this.#timer.unref()
    void this.extend(held)
  }

  /** A handler has something to report. */
  reportSoon(): void {
    this.#report ??= setTimeout(() => this.#tell(), REPORT_AFTER).unref()
  }

  /** A handler has logged something. */
  logSoon(): void {
    this.#logged ??= setTimeout(() => this.#tell(), LOG_AFTER).unref()
  }

  /** In one call, whatever is to be told. */
  #tell(): void {
    this.#stopTelling()
    const isNews = ({ unreported, unsentLog }: Attempt) => unreported !== null || unsentLog?.isEmpty === false
    void this.extend(this.#holder.held().filter(isNews))
  }

  #stopTelling(): void {
    clearTimeout(this.#report)
    clearTimeout(this.#logged)
    this.#report = this.#logged = undefined
  }

  /** A call does not wait for the one before: if a lost answer held up the next extension, leases would end. */
  async extend(attempts: Attempt[]): Promise<void> {
    if (attempts.length === 0) return
    const extensions = attempts.map(({ claimed, unreported, unsentLog }) => ({
      id: claimed.id,
      fence: claimed.fence,
      claim: claimed,
      progress: unreported,
      ...(unsentLog?.isEmpty === false && { log: unsentLog.lines }),
    }))
    const counts = attempts.map(({ unsentLog }) => unsentLog?.count ?? 0)
    const leftOut = attempts.map((attempt) => attempt.leftOut)
    const heldUntil = performance.now() + this.#lease
    const outcomes = await splitting(
      extensions,
      (items) => this.#store.operations.extend({ queue: this.#queue, lease: this.#lease, items }),
      'extending leases',
    )
    const marked: Attempt[] = []
    const errors = new Set<MillpondError>()
    for (const [index, attempt] of attempts.entries()) {
      const outcome = outcomes[index]
      if (outcome instanceof MillpondError) {
        errors.add(outcome)
        // What another call has put in the place of refused reports is not refused yet.
        const isFirst = attempt.isOpen && attempt.leftOut === leftOut[index]
        if (isFirst && isRefusal(outcome) && attempt.leaveOutReports(outcome)) marked.push(attempt)
        continue
      }
      if (outcome === 'held') {
        // Nothing was stored of it.
        this.reportSoon()
        continue
      }
      // Another call may have overtaken this one, and the handler may have reported anew.
      if (attempt.unreported === extensions[index]?.progress) attempt.unreported = null
      if (outcome === 'ok' && attempt.isOpen) attempt.unsentLog?.sent(counts[index] ?? 0)
      if (outcome === 'ok') attempt.heldUntil = Math.max(attempt.heldUntil, heldUntil)
      else this.#holder.lost(attempt, lossOf(attempt, this.#queue, outcome === 'cancelled'))
    }
    for (const error of errors) this.#holder.trouble(error)
    await this.extend(marked)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#stopTelling()
  }
}

export function lossOf({ claimed: { id, attempt } }: Attempt, queue: string, cancelled: boolean): MillpondError {
  if (cancelled) return new MillpondError('JobCancelled', `job ${id} was cancelled while it ran`, { id, queue })
  const message = `attempt ${attempt} of job ${id} is over: its lease was lost or it was finished elsewhere`
  return new MillpondError('StaleAttempt', message, { id, queue })
}
