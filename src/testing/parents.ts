/** What `ctx.parents` shows in `runHandler` and `runBatchHandler`. */

import { decode, encode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { checkId, newId } from '../values/jobs/ids.ts'
import { jobError } from '../values/jobs/job.ts'
import type { ParentJob } from '../values/jobs/parent-jobs.ts'
import type { FinalState } from '../values/jobs/records.ts'
import { checkOptions, type Rules } from '../values/options/options.ts'
import { checkQueueName } from '../values/settings/names.ts'

/** A job that the handler's one has waited for. */
export interface TestParent {
  /** A new id unless given. */
  id?: string | undefined
  /** `test` unless given. */
  queue?: string | undefined
  /** `done` unless given; `dead`, if there is an error. `gone`: the store does not know it any more. */
  state?: FinalState | 'gone' | undefined
  /** What its handler returned. */
  result?: unknown
  /** What its last attempt has thrown. */
  error?: unknown
}

const STATES: readonly unknown[] = ['done', 'dead', 'cancelled', 'gone']
const RULES: Rules<TestParent> = {
  id: (value) => checkId(value) !== '',
  queue: (value) => checkQueueName(value) !== '',
  state: (value) => STATES.includes(value) || "'done', 'dead', 'cancelled' or 'gone'",
  result: () => true,
  error: () => true,
}

/** As a handler is shown them: results go through their encoding. @throws InvalidOption, InvalidName, Payload… */
export function testParents(given: readonly TestParent[], maxPayload: number): ParentJob[] {
  if (!Array.isArray(given)) throw new MillpondError('InvalidOption', 'the parents of a job of a test must be an array')
  const parents = given.map((each) => {
    const {
      id = newId(),
      queue = 'test',
      result,
      error,
      ...own
    } = checkOptions(each, RULES, 'a parent of a job of a test')
    const { state = error === undefined ? 'done' : 'dead' } = own
    return {
      ...{ id: id.toLowerCase(), queue: state === 'gone' ? null : queue, state },
      result: result === undefined ? undefined : decode(encode(result, 'result', maxPayload), 'result'),
      error: error === undefined ? null : jobError(error),
    }
  })
  return parents.sort((one, other) => (one.id < other.id ? -1 : 1))
}
