/** What a key of a push does beyond one live job: docs/once.md. */
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { integer, object, oneOf, type Schema } from './json-schema.ts'

const CENTURY = DEFAULTS.bounds.delay.most
const duration = (what: string, least: number) => integer(least, CENTURY, { description: `${what}, in milliseconds.` })
const replace: Schema<boolean> = {
  type: 'boolean',
  description: 'A scheduled or waiting job with the key gets these data and this due time.',
}

/** A member of a push. It needs a key. */
export const ONCE = object(
  {},
  {
    for: duration('How long the key is remembered after the job', 1),
    since: oneOf(['end', 'push'], { default: 'end', description: 'From when: the end of the job, or its push.' }),
    replace,
    maxWait: duration('With `replace`: the job is due no later than this after its first push', 0),
    whenRunning: oneOf(['follow'], {
      description: 'While the job with the key runs, this one is kept, and is due when that one ends.',
    }),
  },
  { additionalProperties: false, description: 'What the key does beyond one live job.' },
)
