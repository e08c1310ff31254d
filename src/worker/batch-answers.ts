/** What a batch handler's answer says of each job. */

import { types } from 'node:util'
import { MillpondError } from '../values/errors/errors.ts'
import { isError } from '../values/runtime/realms.ts'
import { kindOf } from '../values/time/duration.ts'
import { isOutcome } from './outcome.ts'

/** Of one job. */
export interface Answer {
  failed: boolean
  /** The result, or why the job failed: anything that can be thrown, or an Outcome. */
  value: unknown
}

/** @returns per id, in the order of the input. May throw, if a proxy that the handler returned does. */
export function answersOf(ids: readonly string[], answer: unknown): Answer[] {
  if (answer === undefined) return ids.map(() => answerOf(undefined))
  if (isOutcome(answer)) return failedAll(ids, answer)
  if (types.isMap(answer)) {
    const missing = mismatch(ids, 'a Map without some of the ids')
    return ids.map((id) => (answer.has(id) ? answerOf(answer.get(id)) : missing))
  }
  if (!Array.isArray(answer)) return failedAll(ids, mismatch(ids, kindOf(answer)).value)
  const other = mismatch(ids, `an array of ${answer.length}`)
  // Of a longer one nobody knows which entry is for which job.
  if (answer.length > ids.length) return failedAll(ids, other.value)
  return ids.map((_, index) => (index < answer.length ? answerOf(answer[index]) : other))
}

/** @param thrown anything, or an Outcome */
export function failedAll(ids: readonly string[], thrown: unknown): Answer[] {
  return ids.map(() => ({ failed: true, value: thrown }))
}

function answerOf(entry: unknown): Answer {
  return { failed: isError(entry), value: entry }
}

function mismatch({ length }: readonly string[], got: string): Answer {
  const wanted = `an array of one entry for each of its ${length} jobs, a Map by job id, or undefined`
  const message = `a batch handler must answer with ${wanted}; got ${got}`
  return { failed: true, value: new MillpondError('BatchMismatch', message) }
}
