/** How an attempt ends. An ending that is `committed` reached the store in the handler's own transaction. */

import { MillpondError } from '../values/errors/errors.ts'
import { safeText } from '../values/errors/safe-error.ts'
import type { Completion, Encoded, Failure, HoldOutcome, JobError, Park, Release } from '../values/jobs/records.ts'
import type { Attempt } from './attempt.ts'

export type Ending = Untold | Committed
/** The store is to be told. */
export type Untold = Completed | Failed | Released

interface Of {
  attempt: Attempt
}
export interface Completed extends Of, Completion {
  kind: 'complete'
  value: unknown
}
export interface Failed extends Of, Failure {
  kind: 'fail'
  /** Stands for an ending that the store refused. */
  isSubstitute?: boolean
}
interface Released extends Of, Release {
  kind: 'release'
}
export interface Committed extends Of {
  kind: 'committed'
  value: unknown
  outcome: HoldOutcome
}

export function completed(attempt: Attempt, result: Encoded | null, value: unknown): Completed {
  const { claimed: claim } = attempt
  return { kind: 'complete', attempt, id: claim.id, fence: claim.fence, claim, result, value, log: linesOf(attempt) }
}

export function failed(attempt: Attempt, error: JobError, delay: Failure['delay']): Failed {
  const { claimed: claim } = attempt
  return { kind: 'fail', attempt, id: claim.id, fence: claim.fence, claim, error, delay, log: linesOf(attempt) }
}

/** @param pause milliseconds for which its group, or its queue, starts no job */
export function released(attempt: Attempt, pause = 0): Released {
  const { claimed: claim } = attempt
  return { kind: 'release', attempt, id: claim.id, fence: claim.fence, claim, pause, log: linesOf(attempt) }
}

/** The job is parked. */
export function parked(attempt: Attempt, park: Park): Released {
  return { ...released(attempt), park }
}

/**
 * Sent after the store has refused an ending for good: first the same without its lines, then a failure without another attempt, whose
 * error any store can keep. @returns undefined: the store refuses that, too
 */
export function substituteFor(ending: Untold, error: MillpondError): Untold | undefined {
  const { attempt, log = [] } = ending
  if (log.length > 0 && attempt.leaveOutReports(error)) return { ...ending, log: linesOf(attempt) }
  if ((ending.kind === 'release' && ending.park === undefined) || (ending.kind === 'fail' && ending.isSubstitute))
    return undefined
  const what = { complete: 'result', fail: 'error', release: 'waiting' }[ending.kind]
  const text = `the store cannot keep the ${what} of this attempt: ${safeText(error)}`
  const message = text.replaceAll(/[^ -~]/g, '?')
  return { ...failed(attempt, { code: error.code, name: 'MillpondError', message }, null), isSubstitute: true }
}

/** Of a park that the journal has no room for. */
export const tooManySteps = (id: string): MillpondError =>
  new MillpondError(
    'StepsTooLarge',
    `the steps of job ${id} would be over 10,000 entries or 16 MiB; nothing of this one was kept`,
    { id },
  )

const linesOf = ({ unsentLog }: Attempt): readonly string[] | undefined => unsentLog?.lines
