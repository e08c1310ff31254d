/** What requests take and answers hold, as JSON Schema. */

import { SETTING_NAMES } from '../pond/queue-options.ts'
import { TOTAL_NAMES } from '../pond/stats.ts'
import { ERROR_CODES } from '../values/errors/errors.ts'
import { JOB_STATES } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { MAX_RUNNING } from '../values/settings/limits.ts'
import { MAX_COST, MAX_STARTS } from '../values/settings/rate.ts'
import { LAST_TIME, LONGEST_TIMER } from '../values/time/duration.ts'
import {
  array,
  type Fitting,
  integer,
  object,
  oneOf,
  type Properties,
  type Rules,
  type Schema,
  string,
} from './json-schema.ts'
import { BLOCKED, LINKS } from './link-schemas.ts'
import { jobLog, log } from './log-schemas.ts'
import { ONCE } from './once-schemas.ts'

const DAY = DEFAULTS.bounds.ratePer.most
const CENTURY = DEFAULTS.bounds.delay.most
/** Milliseconds. A lease shorter than the way to the worker and back is of no use. */
const SHORTEST_LEASE = 1000
/** Most jobs of a request. */
const MAX_JOBS = 1000

/** A body of a request: unknown members are refused. */
export function request<Required extends Properties, Optional extends Properties>(
  title: string,
  required: Required,
  optional: Optional,
  rules: Rules = {},
) {
  return object(required, optional, { ...rules, title, additionalProperties: false })
}

/** A body of an answer. */
export function reply<Required extends Properties, Optional extends Properties = Record<never, Schema>>(
  title: string,
  required: Required,
  optional?: Optional,
  description?: string,
) {
  return object(required, optional, { title, ...(description !== undefined && { description }) })
}

/** The same schema with a description. */
export const described = <S extends Schema>(schema: S, description: string): S => ({ ...schema, description })
/** The same schema, or null. */
export const nullable = <T>(one: Schema<T>): Schema<T | null> => ({
  ...one,
  type: [one.type ?? [], 'null' as const].flat(),
})

export const text = string()
export const boolean: Schema<boolean> = { type: 'boolean' }
export const anInteger: Schema<number> = { type: 'integer' }
const aNumber: Schema<number> = { type: 'number' }
export const count: Schema<number> = { type: 'integer', minimum: 0 }
export const time = string({ format: 'date-time' })
export const state = oneOf(JOB_STATES)
export const anything: Schema = { description: 'Any JSON or MessagePack value. In JSON, byte strings are base64.' }
export const attempts = (description: string) => integer(1, DEFAULTS.bounds.attempts.most, { description })
// No store keeps NUL in text.
export const name = (description: string) =>
  string({ minLength: 1, maxLength: 255, pattern: '^[^\\u0000]+$', description })
const printable = (rules: Rules) => string({ pattern: '^[ -~]{1,100}$', ...rules })
/** Not text such as "30s": no schema can say how long is too long. */
export const duration = (what: string, least: number, most: number) =>
  integer(least, most, { description: `${what}, in milliseconds.` })
const lease = (what: string) => duration(what, SHORTEST_LEASE, LONGEST_TIMER)

export const id = string({ format: 'uuid', description: 'The id of a job.' })
export const queueName = string({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.:/\\-]{0,127}$',
  description: 'The name of a queue. Percent-encode a slash in it.',
})

// Request headers.
export const PREFER = string({
  description: '`wait=SECONDS`: how long to wait at the most (RFC 7240).',
  examples: ['wait=20'],
})
export const REQUESTED_WITH = string({
  description:
    'Of any value. Where there is no body, a request needs this, `Prefer`, or the Content-Type of a body: forms ' +
    'of web pages can send none of them.',
  examples: ['curl'],
})
export const IDEMPOTENCY_KEY = string({
  description:
    'Makes the request, sent again, the same job. 1 to 255 visible ASCII characters. Where a job has an id of its ' +
    'own, that counts instead.',
  pattern: '^[!#-+\\-.-~]{1,255}$',
})
export const TRACE = string({ description: 'W3C trace context; kept with the job if it is valid.' })
export const KNOWN_ETAG = string({ description: 'The ETag of what is known already.' })

export const runAt: Schema<number | string> = {
  description: 'when it is due: a time in RFC 3339, or milliseconds since 1970; up to the end of the year 9999 in UTC',
  anyOf: [integer(0, LAST_TIME), time],
}

export const newJob = request(
  'NewJob',
  { data: anything },
  {
    id: described(id, 'An id of your own, best a UUIDv7. Pushing it again stores nothing.'),
    priority: integer(0, 9, { default: 4, description: 'Higher first.' }),
    delay: duration('Due after this long', 0, CENTURY),
    runAt,
    key: name('At most one live job of the queue has this key; another push gets that one. 1 to 255 bytes of UTF-8.'),
    group: name('Whose work it is: groups may have limits and take turns. 1 to 255 bytes of UTF-8.'),
    cost: integer(1, MAX_COST, { default: 1, description: 'What its start takes of a rate.' }),
    attempts: attempts('Attempts in all; as the queue says unless given.'),
    timeout: duration('How long an attempt may run, for the worker to heed', 1, LONGEST_TIMER),
    once: ONCE,
    ...LINKS,
  },
  { not: { required: ['delay', 'runAt'], description: 'takes delay or runAt, not both' } },
)
export const newJobs = request('NewJobs', { jobs: array(newJob, { minItems: 1, maxItems: MAX_JOBS }) }, {})

export const pushed = reply(
  'Pushed',
  { id },
  { state },
  'A job that the store has. `state` is left out where it is not known.',
)
export const pushedMany = reply('PushedMany', {
  jobs: array(object({ id, existing: boolean }, { replaced: boolean }), {
    description:
      'In the order of the request. `existing`: no job was added, this one was there already. `replaced`: it has the data and ' +
      'due time of this push.',
  }),
})

const always = {
  ...{ id, queue: text, state, priority: anInteger, pushedAt: time, dueAt: time },
  attempt: described(anInteger, 'How many attempts were started.'),
  attempts: described(anInteger, 'How many it may take in all.'),
}
const sometimes = {
  ...{ startedAt: time, finishedAt: time, progress: anything, result: anything },
  expectedStart: described(time, 'An estimate, while it waits.'),
  ...BLOCKED,
  error: described(
    object({ name: text, message: text, code: text }, { stack: text }),
    'Why the last failed attempt failed.',
  ),
  undecodable: array(oneOf(['data', 'progress', 'result']), {
    description: 'What the store has of the job but cannot be decoded, and so is left out. Only where there is such.',
  }),
}
export const job = reply('Job', always, {
  ...sometimes,
  log: jobLog,
})
export const listedJob = reply('ListedJob', always, {
  ...{ ...sometimes, key: text, group: text, worker: text, cost: anInteger },
  data: described(anything, `${anything.description} Left out where it cannot be decoded.`),
})
/** Where a page of jobs ended. */
export const cursor = string({ maxLength: 255, pattern: '^[a-z]+(\\.[0-9a-f-]+)+$' })
export const jobList = reply(
  'JobList',
  { jobs: array(listedJob) },
  {
    next: described(
      cursor,
      'Give it as `after` for the next page, which goes on there even if the job has moved on; left out on the ' +
        'last one. A page may be shorter than its limit.',
    ),
  },
)

export const jobUpdate = request(
  'JobUpdate',
  {},
  {
    data: anything,
    priority: integer(0, 9, { description: 'Higher first.' }),
    delay: duration('Due after this long from now', 0, CENTURY),
    runAt,
  },
  { not: { required: ['delay', 'runAt'], description: 'takes delay or runAt, not both' } },
)
export const updatedJob = reply('UpdatedJob', { id, outcome: oneOf(['updated']) })
export const removedJob = reply('RemovedJob', { id, outcome: oneOf(['removed']) })
export const removedQueue = reply('RemovedQueue', {
  removed: described(count, 'How many jobs this request removed.'),
  more: described(boolean, 'Jobs are left: send the request again.'),
})
export const workerList = reply('Workers', {
  workers: array(
    object({
      ...{ id: text, queue: text, host: text, pid: anInteger, since: time },
      slots: described(count, 'How many jobs it runs at once.'),
      busy: described(count, 'How many of them are taken.'),
      seen: described(time, 'When it was last heard of.'),
      silence: described(count, 'Milliseconds since then, by the clock of the store.'),
      silent: described(
        boolean,
        'It missed two heartbeats: it may have been killed, and its jobs come back when their leases end.',
      ),
      lanes: described(
        nullable(array(object({ minPriority: integer(1, 9), reserve: count }))),
        'The slots that it keeps for urgent jobs, the highest priority first; null: none, or its process is too old to tell.',
      ),
    }),
  ),
})
export const settingList = reply('Settings', {
  settings: array(
    object(
      { name: oneOf(SETTING_NAMES), value: { description: 'In effect.' }, by: oneOf(['operator', 'code', 'default']) },
      { code: { description: 'What code gives, where an operator has set it.' } },
    ),
  ),
})

export const cancelled = reply('Cancelled', { id, state: oneOf(['cancelled']) })
export const requeuedJob = reply('RequeuedJob', { id, state: oneOf(['waiting']) })
export const requeued = reply('Requeued', { requeued: described(anInteger, 'How many jobs went back to waiting.') })

export const nothing: Schema = {
  ...{ title: 'Nothing', description: 'An empty object, or no body.' },
  ...{ type: 'object', additionalProperties: false },
}

export const claimRequest = request(
  'ClaimRequest',
  {},
  {
    worker: printable({ description: 'A name of the worker, for people to read.', default: 'http' }),
    limit: integer(1, 100, { default: 1 }),
    minPriority: integer(0, 9, { default: 0, description: 'Only jobs of this priority or a higher one.' }),
    lease: lease('How long the claim holds unless extended; as the queue says unless given'),
  },
)

const fence = integer(1, Number.MAX_SAFE_INTEGER, { description: 'Names the claim; every operation on it states it.' })

export const claimedJob = reply(
  'ClaimedJob',
  {
    ...{ id, queue: text, fence, data: anything },
    ...{ attempts: anInteger, priority: anInteger, pushedAt: time, dueAt: time },
    attempt: described(anInteger, 'Which attempt this is, from 1.'),
    leaseUntil: described(time, 'When the claim is lost unless extended, by the clock of the store.'),
  },
  {
    ...{ key: text, group: text },
    timeout: described(anInteger, 'Milliseconds that the attempt may run.'),
    trace: described(text, 'The `traceparent` of the push.'),
  },
)
export const claims = reply('Claims', {
  jobs: array(claimedJob, { description: 'Highest priority first; none if there is nothing to do.' }),
})

const result = described(anything, 'What the job came to; null or left out: nothing.')
const retry: Schema<number | false> = {
  description:
    'milliseconds until the next attempt; false: no further attempt. By the retry policy of the queue unless given',
  anyOf: [{ type: 'boolean', enum: [false] }, integer(0, CENTURY)],
}
const failed = {
  error: object(
    {},
    {
      name: printable({ default: 'Error' }),
      message: string({ maxLength: 100_000, description: 'Kept up to 4,000 characters.' }),
      stack: string({ maxLength: 100_000, description: 'Kept up to 8,000 characters.' }),
    },
    { additionalProperties: false },
  ),
  retry,
  log,
}

export const completion = request('Completion', { fence }, { result, log })
export const failure = request('Failure', { fence }, failed)
const released = {
  rateLimited: duration('For so long no worker claims a job of its group, or of the queue', 1, LONGEST_TIMER),
  log,
}
export const release = request('Release', { fence }, released)
export const extension = request(
  'Extension',
  { fence },
  {
    lease: lease('From now; as the queue says unless given'),
    progress: described(anything, 'How far the job is; its followers see it.'),
    log,
  },
)

/** Many endings of one kind. */
function endings<Optional extends Properties>(optional: Optional) {
  return array(object({ id, fence }, optional, { additionalProperties: false }), { maxItems: MAX_JOBS })
}
export const settlement = request(
  'Settlement',
  {},
  { complete: endings({ result, log }), fail: endings(failed), release: endings(released) },
)

const outcomes = (values: readonly string[]) => array(oneOf(values), { description: 'In the order of the request.' })
const problems = array(object({ id, code: text, detail: text, retryable: boolean }), {
  description:
    'What was wrong with each `error`; left out where there is none. With `retryable`, it may be sent again as it is.',
})
export const settlementOutcome = reply(
  'SettlementOutcome',
  {
    complete: outcomes(['ok', 'stale', 'error']),
    fail: outcomes(['retry', 'dead', 'stale', 'error']),
    release: outcomes(['ok', 'stale', 'error']),
  },
  { problems },
)
export const completedJob = reply('Done', { id, outcome: oneOf(['done']) })
export const failedJob = reply('Failed', { id, outcome: oneOf(['retry', 'dead']) })
export const releasedJob = reply('Released', { id, outcome: oneOf(['waiting']) })
export const extendedClaim = reply('Extended', { id })

const percentiles = (description: string) =>
  object({ count: anInteger }, { p50: aNumber, p95: aNumber, p99: aNumber }, { description })
const measured = percentiles('In milliseconds; left out where nothing was measured.')

export const orNull = nullable(count)
const shownRate = nullable(object({ count, per: count, burst: orNull }))
const shownLimits = { running: orNull, rate: shownRate }
const shownGroupLimits = described(nullable(object(shownLimits)), 'Those of each group; null: groups take no turns.')
const shownQueueLimits = object({ ...shownLimits, group: shownGroupLimits })

export const queueReport = reply('Queue', {
  ...{ queue: text, paused: boolean, capacity: { type: ['integer', 'null'] } },
  counts: object(Object.fromEntries(JOB_STATES.map((one) => [one, count]))),
  totals: described(
    object(Object.fromEntries(TOTAL_NAMES.map((one) => [one, count]))),
    'How often each happened since the queue was made. `failed`: attempts; `lost`: claims whose lease ran out.',
  ),
  oldestWaiting: { type: ['number', 'null'], description: 'Milliseconds since the oldest waiting job became due.' },
  wait: percentiles('From due to started, in milliseconds.'),
  run: percentiles('From started to finished, of jobs that a process of the library or a delivery ran.'),
  priorities: array(object({ priority: anInteger, wait: measured, run: measured })),
  limits: described(nullable(shownQueueLimits), 'As a change takes them; null: it has none, and groups take no turns.'),
  nextStart: described(
    orNull,
    'Milliseconds until its rate, or a pause by a rate limited job, allows a start; null: a slot is awaited.',
  ),
  groupsAtLimit: described(count, 'Groups with waiting jobs that wait for a slot of their own.'),
  groupsHeld: described(count, 'Groups with waiting jobs that wait for their rate, or the end of their pause.'),
  overrides: object({}, {}, { description: 'What an operator has set, by name; it holds whatever programs give.' }),
  lastClaim: described(
    orNull,
    'Milliseconds since a worker last asked for jobs, to within half a minute; null: never.',
  ),
})
export const queuePlan = reply(
  'Plan',
  {
    queue: text,
    workers: described(
      count,
      'Jobs that must run at once, the most that was wanted within `hold`: divide by what a process runs.',
    ),
    wanted: described(count, 'The same, of this moment.'),
    load: described(aNumber, 'Jobs that run at once on average.'),
    utilization: aNumber,
    drain: described(aNumber, 'Milliseconds until no job waits, with `wanted` workers.'),
    wait: object(
      { mean: aNumber, longest: aNumber },
      {},
      { description: 'Milliseconds; `longest`: of 99 jobs of 100.' },
    ),
    rate: described(aNumber, 'Starts a second, measured.'),
    work: { type: ['number', 'null'], description: 'Mean run time in milliseconds, measured; null: no job has run.' },
    backlog: described(count, 'Jobs that wait.'),
  },
  undefined,
  'For autoscalers. A queue that does not exist wants no workers.',
)
export const queueList = reply('Queues', { queues: array(queueReport) })

const backoff = object(
  {
    base: duration('After the first attempt', 0, CENTURY),
    factor: { ...aNumber, minimum: 1, maximum: 100 },
    max: duration('The longest delay', 0, CENTURY),
    jitter: { ...aNumber, minimum: 0, maximum: 1, description: 'The share that is left to chance.' },
  },
  {},
  {
    description: 'The delay of failures that name none: min(max, base × factor^(attempt − 1)) × (1 − jitter × random).',
    additionalProperties: false,
  },
)
const capacity = integer(1, Number.MAX_SAFE_INTEGER, {
  description: 'Most blocked, scheduled and waiting jobs; null: without limit.',
})
const timeout = integer(1, LONGEST_TIMER, {
  description: 'Milliseconds that an attempt may run of a job pushed without a limit of its own; null: without limit.',
})

const rateInFull = request(
  'Rate',
  { count: integer(1, MAX_STARTS), per: duration('In this time', 1, DAY) },
  { burst: nullable(integer(1, MAX_STARTS, { description: 'Starts at once after a pause; null: those of 100 ms.' })) },
  { description: 'Most starts in a time, over all workers: in full, or as a text such as "100/s" or "5/10s".' },
)
/** The keywords of objects say nothing of a text, nor the pattern of an object. */
const rate: Schema<Fitting<typeof rateInFull> | `${number}/${string}`> = {
  ...rateInFull,
  type: ['object', 'string'],
  pattern: '^[0-9]{1,7}/(?:[0-9]{1,9}(?:\\.[0-9]{1,9})?)?(?:ms|s|m|h|d)$',
}
const limits = {
  running: nullable(integer(1, MAX_RUNNING, { description: 'Most jobs that run at once, over all workers.' })),
  rate: nullable(rate),
}
const groupLimits = request('LimitsOfEachGroup', {}, limits, { description: 'Once given, groups take turns.' })
const queueLimits = request(
  'Limits',
  {},
  { ...limits, group: nullable(groupLimits) },
  { description: 'They replace those that the queue has: what is left out or null is no limit.' },
)

export const queueChange = request(
  'QueueChange',
  {},
  {
    paused: described(boolean, 'A paused queue takes pushes and yields no claims.'),
    capacity: nullable(capacity),
    keepDone: duration('How long done jobs are kept', 0, CENTURY),
    keepDead: duration('How long dead and cancelled jobs are kept', 0, CENTURY),
    attempts: attempts('Attempts of jobs pushed without a number of their own.'),
    backoff,
    lease: lease('Of claims and extensions that name none'),
    timeout: nullable(timeout),
    limits: nullable(queueLimits),
    by: oneOf(['operator', 'code'], {
      description: "An operator's settings hold until they are cleared. A program that gives its own at start is code.",
      default: 'operator',
    }),
    clear: array(oneOf(SETTING_NAMES), {
      description: 'Settings of the operator that are given back: what code gives holds again.',
      maxItems: SETTING_NAMES.length,
    }),
  },
)

const aGroup = 'The name of a group; empty: the jobs without one.'
export const groupName = string({ maxLength: 255, pattern: '^[^\\u0000]*$', description: aGroup })
export const groupChange = request(
  'GroupChange',
  { group: groupName },
  {
    ...limits,
    weight: { ...aNumber, exclusiveMinimum: 0, maximum: 1000, default: 1, description: 'Its share of the turns.' },
  },
)
export const group = reply('Group', {
  group: groupName,
  limits: described(nullable(object({ ...shownLimits, weight: aNumber })), 'Of its own; null: as the queue has it.'),
  ...{ waiting: described(count, 'A store may stop counting at 10,000.'), running: count },
  nextStart: described(
    orNull,
    'Milliseconds until its rate or pause allows a start; null: a slot is awaited, or no job waits.',
  ),
})
export const groupList = reply('Groups', { groups: array(group) }, { next: groupName })

export const health = reply('Health', { status: oneOf(['ok']) })
export const problem = reply(
  'Problem',
  { type: text, title: text, status: anInteger, detail: text },
  { code: oneOf(ERROR_CODES) },
  'RFC 9457.',
)
