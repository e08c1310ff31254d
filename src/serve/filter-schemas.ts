/** Filters of lists and bulk changes. */
import { LAST_TIME } from '../values/time/duration.ts'
import { name } from './api-schemas.ts'
import { integer, string } from './json-schema.ts'

/** Filters of a list of jobs, by the names of `queue.jobs`. */
export const JOB_FILTERS = {
  group: string({ maxLength: 255, pattern: '^[^\\u0000]*$', description: 'Of this group; empty: of none.' }),
  key: name('With this key.'),
  errorCode: string({ minLength: 1, maxLength: 128, description: 'Whose last error has this code.' }),
  errorText: string({ minLength: 1, maxLength: 255, description: 'Whose last error has this text in its message.' }),
  pushedFrom: integer(0, LAST_TIME, { description: 'Pushed at this time or later, in milliseconds since 1970.' }),
  pushedBefore: integer(0, LAST_TIME, { description: 'Pushed before this time, in milliseconds since 1970.' }),
  text: string({ minLength: 1, maxLength: 255, description: 'With this text in their data, if those are JSON.' }),
  data: string({
    ...{ minLength: 2, maxLength: 2000, pattern: '^[^=.]+(?:\\.[^=.]+)*=' },
    description: 'With this value at this place in their data, if those are JSON: user.id=7.',
  }),
}
