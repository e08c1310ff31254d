/** The jobs that a pushed one waits for: docs/graphs.md. */
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { array, integer, oneOf, string } from './json-schema.ts'

const id = (description?: string) => string({ format: 'uuid', ...(description !== undefined && { description }) })
export const MAX_PARENTS = DEFAULTS.bounds.parents.most

/** Members of a push. */
export const LINKS = {
  after: array(id(), {
    maxItems: MAX_PARENTS,
    description: 'It waits for the jobs with these ids, in any queue, and starts when the last of them is done.',
  }),
  onDead: oneOf(['cancel', 'run'], {
    default: 'cancel',
    description: 'What becomes of it when one of them dies, is cancelled or is removed.',
  }),
  partOf: id('The id of a live job: every job that still waits for that one waits for this one too.'),
}

/** Members of a blocked job. */
export const BLOCKED = {
  waitsFor: integer(1, Number.MAX_SAFE_INTEGER, { description: 'While it is blocked: for how many jobs it waits.' }),
}
