/** The shapes of requests and answers, as JSON Schema. */
import { ERROR_CODES } from '../errors.ts'
import { JOB_STATES } from '../store.ts'
import { LAST_TIME } from '../web/time.ts'
import type { Schema } from './schema.ts'

/** Milliseconds. Text such as "30s" has no place here: no schema can say how long is too long. */
export function duration(what: string, least: number, most: number, otherwise?: number): Schema {
  return {
    type: 'integer',
    minimum: least,
    maximum: most,
    description: `${what}, in milliseconds.`,
    ...(otherwise === undefined ? {} : { default: otherwise }),
  }
}

export const CENTURY = 36_525 * 86_400_000
/** 24 days: what a timer can hold. */
export const LONGEST_TIMER = 24 * 86_400_000
/** A lease shorter than the way to the worker and back is of no use. */
export const SHORTEST_LEASE = 1000
/** Unless another is asked for. */
export const LEASE = 30_000

export const id: Schema = { type: 'string', format: 'uuid', description: 'The id of a job.' }
export const queueName: Schema = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.:/\\-]{0,127}$',
  description: 'The name of a queue. Percent-encode a slash in it.',
}
const state: Schema = { type: 'string', enum: JOB_STATES }
const time: Schema = { type: 'string', format: 'date-time' }
const anything: Schema = { description: 'Any JSON or MessagePack value. In JSON, byte strings are base64.' }
const name: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  // NUL is what no store keeps in text.
  pattern: '^[^\\u0000]+$',
  description: '1 to 255 bytes of UTF-8, without NUL.',
}

const options: Readonly<Record<string, Schema>> = {
  id: { ...id, description: 'An id of your own, best a UUIDv7. Pushing it again stores nothing.' },
  priority: { type: 'integer', minimum: 0, maximum: 9, default: 4, description: 'Higher first.' },
  delay: duration('Due after this long', 0, CENTURY),
  runAt: {
    description:
      'when it is due: a time in RFC 3339, or milliseconds since 1970; up to the end of the year 9999 in UTC',
    anyOf: [
      { type: 'integer', minimum: 0, maximum: LAST_TIME },
      { type: 'string', format: 'date-time' },
    ],
  },
  key: {
    ...name,
    description: 'At most one live job of the queue has this key; another push gets that one. 1 to 255 bytes of UTF-8.',
  },
  group: { ...name, description: 'Whose work it is; kept with the job. 1 to 255 bytes of UTF-8.' },
  attempts: { type: 'integer', minimum: 1, maximum: 1_000_000, default: 10, description: 'Attempts in all.' },
  timeout: duration('How long an attempt may run, for the worker to heed', 1, LONGEST_TIMER),
}

export const newJob: Schema = {
  title: 'NewJob',
  type: 'object',
  properties: { data: anything, ...options },
  required: ['data'],
  additionalProperties: false,
  not: { required: ['delay', 'runAt'], description: 'takes delay or runAt, not both' },
}

export const newJobs: Schema = {
  title: 'NewJobs',
  type: 'object',
  properties: { jobs: { type: 'array', items: newJob, minItems: 1, maxItems: 1000 } },
  required: ['jobs'],
  additionalProperties: false,
}

export const pushed: Schema = {
  title: 'Pushed',
  description: 'A job that the store has. `state` is left out where it is not known.',
  type: 'object',
  properties: { id, state },
  required: ['id'],
}

export const pushedMany: Schema = {
  title: 'PushedMany',
  type: 'object',
  properties: {
    jobs: {
      type: 'array',
      description: 'In the order of the request. `existing`: nothing was stored, this job was there already.',
      items: { type: 'object', properties: { id, existing: { type: 'boolean' } }, required: ['id', 'existing'] },
    },
  },
  required: ['jobs'],
}

const jobError: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    message: { type: 'string' },
    code: { type: 'string' },
    stack: { type: 'string' },
  },
  required: ['name', 'message', 'code'],
}

const facts: Readonly<Record<string, Schema>> = {
  id,
  queue: { type: 'string' },
  state,
  priority: { type: 'integer' },
  attempt: { type: 'integer', description: 'How many attempts were started.' },
  attempts: { type: 'integer', description: 'How many it may take in all.' },
  pushedAt: time,
  dueAt: time,
  startedAt: time,
  finishedAt: time,
  expectedStart: { ...time, description: 'An estimate, while it waits.' },
  progress: anything,
  result: anything,
  error: { ...jobError, description: 'Why the last failed attempt failed.' },
  undecodable: {
    type: 'array',
    items: { type: 'string', enum: ['data', 'progress', 'result'] },
    description: 'What the store has of the job but cannot be decoded, and so is left out. Only where there is such.',
  },
}
const ALWAYS = ['id', 'queue', 'state', 'priority', 'attempt', 'attempts', 'pushedAt', 'dueAt']

export const job: Schema = { title: 'Job', type: 'object', properties: facts, required: ALWAYS }

export const listedJob: Schema = {
  title: 'ListedJob',
  type: 'object',
  properties: {
    ...facts,
    data: { ...anything, description: `${anything.description} Left out where it cannot be decoded.` },
    key: { type: 'string' },
    group: { type: 'string' },
    worker: { type: 'string' },
  },
  required: ALWAYS,
}

export const jobList: Schema = {
  title: 'JobList',
  type: 'object',
  properties: {
    jobs: { type: 'array', items: listedJob },
    next: {
      ...id,
      description:
        'Give it as `after` for the next page; left out on the last one. A page may be shorter than its limit.',
    },
  },
  required: ['jobs'],
}

export const cancelled: Schema = {
  title: 'Cancelled',
  type: 'object',
  properties: { id, state: { type: 'string', enum: ['cancelled'] } },
  required: ['id', 'state'],
}

export const requeuedJob: Schema = {
  title: 'RequeuedJob',
  type: 'object',
  properties: { id, state: { type: 'string', enum: ['waiting'] } },
  required: ['id', 'state'],
}

export const requeued: Schema = {
  title: 'Requeued',
  type: 'object',
  properties: { requeued: { type: 'integer', description: 'How many jobs went back to waiting.' } },
  required: ['requeued'],
}

export const nothing: Schema = {
  title: 'Nothing',
  description: 'An empty object, or no body.',
  type: 'object',
  additionalProperties: false,
}

export const claimRequest: Schema = {
  title: 'ClaimRequest',
  type: 'object',
  properties: {
    worker: {
      type: 'string',
      pattern: '^[ -~]{1,100}$',
      description: 'A name of the worker, for people to read.',
      default: 'http',
    },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 1 },
    lease: duration('How long the claim holds unless extended', SHORTEST_LEASE, LONGEST_TIMER, LEASE),
  },
  additionalProperties: false,
}

const fence: Schema = {
  type: 'integer',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Names the claim; every operation on it states it.',
}

export const claimedJob: Schema = {
  title: 'ClaimedJob',
  type: 'object',
  properties: {
    id,
    queue: { type: 'string' },
    fence,
    attempt: { type: 'integer', description: 'Which attempt this is, from 1.' },
    attempts: { type: 'integer' },
    priority: { type: 'integer' },
    data: anything,
    pushedAt: time,
    dueAt: time,
    leaseUntil: { ...time, description: 'When the claim is lost unless extended, by the clock of the store.' },
    key: { type: 'string' },
    group: { type: 'string' },
    timeout: { type: 'integer', description: 'Milliseconds that the attempt may run.' },
    trace: { type: 'string', description: 'The `traceparent` of the push.' },
  },
  required: ['id', 'queue', 'fence', 'attempt', 'attempts', 'priority', 'data', 'pushedAt', 'dueAt', 'leaseUntil'],
}

export const claims: Schema = {
  title: 'Claims',
  type: 'object',
  properties: {
    jobs: { type: 'array', items: claimedJob, description: 'Highest priority first; none if there is nothing to do.' },
  },
  required: ['jobs'],
}

const result: Schema = { ...anything, description: 'What the job came to; null or left out: nothing.' }
const error: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^[ -~]{1,100}$', default: 'Error' },
    message: { type: 'string', maxLength: 100_000, description: 'Kept up to 4,000 characters.' },
    stack: { type: 'string', maxLength: 100_000, description: 'Kept up to 8,000 characters.' },
  },
  additionalProperties: false,
}
const retry: Schema = {
  description: 'milliseconds until the next attempt; false: no further attempt. The usual backoff unless given',
  anyOf: [
    { type: 'boolean', enum: [false] },
    { type: 'integer', minimum: 0, maximum: CENTURY },
  ],
}

function body(title: string, properties: Readonly<Record<string, Schema>>): Schema {
  return {
    title,
    type: 'object',
    properties: { fence, ...properties },
    required: ['fence'],
    additionalProperties: false,
  }
}

export const completion = body('Completion', { result })
export const failure = body('Failure', { error, retry })
export const release = body('Release', {})
export const extension = body('Extension', {
  lease: duration('From now', SHORTEST_LEASE, LONGEST_TIMER, LEASE),
  progress: { ...anything, description: 'How far the job is; shown to those who follow it.' },
})

function settledOf({ properties, required }: Schema): Schema {
  return {
    type: 'array',
    maxItems: 1000,
    items: {
      type: 'object',
      properties: { id, ...properties },
      required: ['id', ...(required ?? [])],
      additionalProperties: false,
    },
  }
}

export const settlement: Schema = {
  title: 'Settlement',
  type: 'object',
  properties: { complete: settledOf(completion), fail: settledOf(failure), release: settledOf(release) },
  additionalProperties: false,
}

function outcomes(...values: readonly string[]): Schema {
  return { type: 'array', items: { type: 'string', enum: values }, description: 'In the order of the request.' }
}

export const settlementOutcome: Schema = {
  title: 'SettlementOutcome',
  type: 'object',
  properties: {
    complete: outcomes('ok', 'stale'),
    fail: outcomes('retry', 'dead', 'stale'),
    release: outcomes('ok', 'stale'),
  },
  required: ['complete', 'fail', 'release'],
}

export const done = outcome('Done', 'done')
export const failed = outcome('Failed', 'retry', 'dead')
export const released = outcome('Released', 'waiting')
export const extended: Schema = { title: 'Extended', type: 'object', properties: { id }, required: ['id'] }

function outcome(title: string, ...states: readonly string[]): Schema {
  return {
    title,
    type: 'object',
    properties: { id, outcome: { type: 'string', enum: states } },
    required: ['id', 'outcome'],
  }
}

const percentiles: Schema = {
  description: 'In milliseconds; left out where nothing was measured.',
  type: 'object',
  properties: { count: { type: 'integer' }, p50: { type: 'number' }, p95: { type: 'number' }, p99: { type: 'number' } },
  required: ['count'],
}
const count: Schema = { type: 'integer', minimum: 0 }

export const queueReport: Schema = {
  title: 'Queue',
  type: 'object',
  properties: {
    queue: { type: 'string' },
    paused: { type: 'boolean' },
    capacity: { type: ['integer', 'null'] },
    counts: {
      type: 'object',
      properties: Object.fromEntries(JOB_STATES.map((one) => [one, count])),
      required: JOB_STATES,
    },
    oldestWaiting: { type: ['number', 'null'], description: 'Milliseconds since the oldest waiting job became due.' },
    wait: { ...percentiles, description: 'From due to started, in milliseconds.' },
    run: {
      ...percentiles,
      description: 'From started to finished, of jobs that a process of the library or a delivery ran.',
    },
    priorities: {
      type: 'array',
      items: {
        type: 'object',
        properties: { priority: { type: 'integer' }, wait: percentiles, run: percentiles },
        required: ['priority', 'wait', 'run'],
      },
    },
  },
  required: ['queue', 'paused', 'capacity', 'counts', 'oldestWaiting', 'wait', 'run', 'priorities'],
}

export const queueList: Schema = {
  title: 'Queues',
  type: 'object',
  properties: { queues: { type: 'array', items: queueReport } },
  required: ['queues'],
}

export const queueChange: Schema = {
  title: 'QueueChange',
  type: 'object',
  properties: {
    paused: { type: 'boolean', description: 'A paused queue takes pushes and yields no claims.' },
    capacity: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Most scheduled and waiting jobs; null: without limit.',
    },
    keepDone: duration('How long done jobs are kept', 0, CENTURY),
    keepDead: duration('How long dead and cancelled jobs are kept', 0, CENTURY),
  },
  additionalProperties: false,
}

export const health: Schema = {
  title: 'Health',
  type: 'object',
  properties: { status: { type: 'string', enum: ['ok'] } },
  required: ['status'],
}

export const problem: Schema = {
  title: 'Problem',
  description: 'RFC 9457.',
  type: 'object',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', enum: ERROR_CODES },
  },
  required: ['type', 'title', 'status', 'detail'],
}
