/** The error of a job that is cancelled because a job that it waited for ended otherwise than done: contract/graphs.md. */
import type { FinalState, JobError } from './records.ts'

/** @param ending how the parent ended */
export function parentFailed(parent: string, ending: FinalState | 'removed'): JobError {
  return {
    code: 'ParentFailed',
    name: 'MillpondError',
    message: `The job ${parent}, which it waited for, is ${ending}.`,
  }
}
