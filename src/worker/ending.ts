/** How an attempt ends. An ending that is `committed` reached the store in the handler's own transaction. */

import type { Completion, Encoded, Failure, HoldOutcome, JobError, Release } from '../values/jobs/records.ts'
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

const linesOf = ({ unsentLog }: Attempt): readonly string[] | undefined => unsentLog?.lines
