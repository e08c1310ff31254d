/** The log of a job, in requests and answers. */
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { array, integer, object, type Schema, string } from './json-schema.ts'

const fields: Schema<object> = { type: 'object' }
const time = (description: string) => string({ format: 'date-time', description })

export const jobLog = array(
  object(
    { message: string() },
    {
      at: time('By the clock of the store; left out where the line cannot be read.'),
      attempt: integer(1, Number.MAX_SAFE_INTEGER, {
        description: 'Left out where it is not known, as of lines that came over HTTP.',
      }),
      fields,
      cut: { type: 'boolean', description: 'The message was shortened, or the fields were left out.' },
    },
  ),
  { description: 'What its workers have logged: the last 100 lines, oldest first.' },
)

/** With each operation on a claim. */
export const log = array(
  object(
    { message: string({ maxLength: 100_000 }) },
    { fields, at: time('When it was written; the time of the request unless given.') },
    { additionalProperties: false },
  ),
  {
    maxItems: DEFAULTS.log.lines,
    description:
      'Lines for the log of the job, which keeps the last 100, 64 KiB at most. A message of more than 2,000 ' +
      'characters is shortened; fields of more than 4,000 characters are left out.',
  },
)
