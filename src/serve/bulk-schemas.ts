/** What requests for changes in bulk take, and what they answer, as JSON Schema. */
import { BULK_STATES, type BulkVerb } from '../pond/bulk-options.ts'
import { JOB_STATES } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { listedJob, runAt } from './api-schemas.ts'
import { JOB_FILTERS } from './filter-schemas.ts'
import { array, integer, object, oneOf, type Schema, string } from './json-schema.ts'

const ACTIONS = Object.keys(BULK_STATES).filter((name): name is BulkVerb => name in BULK_STATES)
const count: Schema<number> = { type: 'integer', minimum: 0 }
const position = (description: string) =>
  string({ maxLength: 400, pattern: '^[0-9]{1,16}~[a-z]+(\\.[0-9a-f-]+)*$', description })
const { delay } = DEFAULTS.bounds

export const bulkChange = object(
  { action: oneOf(ACTIONS, { description: '`update` sets `priority`, `delay` or `runAt`.' }) },
  {
    state: oneOf(JOB_STATES, {
      description:
        'Their state. Must be given to remove and to update; else dead jobs are requeued, blocked, scheduled, waiting and ' +
        'running ones cancelled, scheduled ones promoted.',
    }),
    ...JOB_FILTERS,
    dryRun: { type: 'boolean', description: 'Changes nothing; tells how many, and a few of them.' } as Schema<boolean>,
    after: position('`next` of the answer before, or `from` of a dry run; with the same filter.'),
    limit: integer(1, 10_000, { description: 'Most jobs of this request.', default: 10_000 }),
    priority: integer(0, 9, { description: 'Of an update. Higher first.' }),
    delay: integer(delay.least, delay.most, { description: 'Of an update: milliseconds from the start of the run.' }),
    runAt,
  },
  {
    title: 'BulkChange',
    additionalProperties: false,
    not: { required: ['delay', 'runAt'], description: 'takes delay or runAt, not both' },
  },
)

export const bulkAnswer = object(
  {},
  {
    looked: { ...count, description: 'How many jobs this request has looked at.' },
    matched: { ...count, description: 'How many of them passed the filter.' },
    changed: {
      ...count,
      description: 'How many were changed; the others stay, as a live job has their key or they are changing.',
    },
    next: position('Jobs may be left: send the same request with it as `after`. Left out once all are done.'),
    count: { ...count, description: 'Of a dry run: how many jobs would be changed.' },
    isEstimate: { type: 'boolean', description: 'Of a dry run: there are many jobs, so `count` is an estimate.' },
    sample: array(listedJob, { description: 'Of a dry run: some of them.' }),
    from: position('Of a dry run: the `after` of a request that takes only jobs that are there now.'),
  },
  { title: 'BulkAnswer' },
)
