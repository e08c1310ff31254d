/** Changes of jobs that do not run yet. */

import type { Store } from '../store.ts'
import { encode } from '../values/encoding/encoding.ts'
import { type StandardSchema, validate } from '../values/encoding/schema.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { checkId } from '../values/jobs/ids.ts'
import { needs } from '../values/operations/capabilities.ts'
import type { JobUpdate } from '../values/operations/requests.ts'
import { checkOptions, defined, isInteger, type Rules } from '../values/options/options.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { timeOf } from './push/options.ts'

/** What is unset stays. */
export interface UpdateOptions<Data = unknown> {
  /** Checked by the queue's schema, as by a push. */
  data?: Data | undefined
  /** Whole number, 0 to 9, higher first. */
  priority?: number | undefined
  /** The job is due after this time from now, by the store's clock; 0 to 100 years. Not together with `runAt`. */
  delay?: Duration | undefined
  /** The job is due at this time: a Date, or milliseconds since 1970. A time in the past means now. Not together with `delay`. */
  runAt?: Date | number | undefined
}

const RULES: Rules<UpdateOptions> = {
  data: () => true,
  priority: isInteger(0, 9),
  delay: (value) => milliseconds(value, 'delay') >= 0,
  runAt: (value) => timeOf(value) !== undefined || 'a valid Date, or milliseconds since 1970',
}

interface UpdateTarget {
  queue: string
  store: Store
  maxPayload: number
  schema: StandardSchema | undefined
}

/** The update as the store takes it. @throws InvalidOption, InvalidName, NotSupported, SchemaMismatch, Payload… */
export async function jobUpdate(id: string, options: UpdateOptions, target: UpdateTarget): Promise<JobUpdate> {
  const { queue, store, maxPayload, schema } = target
  const known = checkId(id)
  const { data, priority, delay, runAt } = checkOptions(options, RULES, `update of a job of ${queue}`)
  if (delay !== undefined && runAt !== undefined) {
    throw new MillpondError('InvalidOption', 'update: give delay or runAt, not both')
  }
  needs(store, 'update', 'update')
  if (priority !== undefined) needs(store, 'priorities', 'priority')
  if (delay !== undefined || runAt !== undefined) needs(store, 'delays', 'a due time')
  const encoded = data === undefined ? undefined : encode(data, 'data', maxPayload)
  if (data !== undefined && schema !== undefined) await validate(schema, data, queue)
  return {
    id: known,
    ...defined({
      data: encoded,
      priority,
      delay: delay === undefined ? undefined : milliseconds(delay, 'delay'),
      runAt: timeOf(runAt),
    }),
  }
}
