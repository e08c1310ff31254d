/** The inputs of a vector's steps as operations take them: short ids, times, bodies, and what the shorthand leaves out. */
import type { OperationName } from '../../src/store.ts'
import { EPOCH, type Json, longId } from './vectors.ts'

type Fields = { [name: string]: Json }

const QUEUE = { queue: 'q' }
/** What a vector leaves out: of an operation's input, */
const INPUTS: { [Name in OperationName]?: Fields } = {
  ...{
    configure: QUEUE,
    settings: QUEUE,
    limitGroup: QUEUE,
    complete: QUEUE,
    fail: QUEUE,
    release: QUEUE,
    extend: QUEUE,
    journal: QUEUE,
  },
  ...{ list: QUEUE, groups: QUEUE, bulk: QUEUE },
  claim: { ...QUEUE, worker: 'w', limit: 100, lease: 60_000 },
  heartbeat: { workers: [], gone: [] },
  schedules: { limit: 100 },
}
/** and of its items. */
const JOB: Fields = {
  ...{ ...QUEUE, priority: 4, delay: 0, runAt: null, key: null, group: null, attempts: 3, timeout: null, trace: null },
  data: { encoding: 'json', body: 'null' },
}
const RECORD: Fields = {
  ...{ ...QUEUE, state: 'waiting', priority: 4, attempt: 0, attempts: 3, fence: 0, key: null, group: null, cost: 1 },
  ...{ timeout: null, trace: null, pushedAt: 0, dueAt: 0, startedAt: null, finishedAt: null, worker: null },
  ...{ data: { encoding: 'json', body: 'null' }, progress: null, result: null, error: null },
}
const WORKER: Fields = { ...QUEUE, host: 'h', pid: 1, slots: 10, busy: 0 }
const SCHEDULE: Fields = {
  ...{ version: '1', when: '@daily', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null },
  ...{ paused: false, again: false, job: {} },
}
/** Of what a schedule pushes. */
const SCHEDULED: Fields = {
  ...{ ...QUEUE, priority: 4, key: null, group: null, cost: 1, attempts: 3, timeout: null },
  data: { encoding: 'json', body: 'null' },
}
const ENTRY: Fields = { meta: '{}', body: null }
const PARK: Fields = { until: null, signals: 0, after: [], entries: [], reason: '{}' }
const FIRING: Fields = { version: '1', next: null, jobs: [] }
const ITEMS: { [name: string]: Fields } = {
  'push.jobs': JOB,
  'complete.items': { result: null },
  'journal.items': {},
  'release.items': {},
  'fail.items': { error: { code: 'HandlerFailed', name: 'Error', message: 'it failed' } },
  'extend.items': { progress: null },
  'signal.items': ENTRY,
  'restore.records': RECORD,
  'heartbeat.workers': WORKER,
  'declare.schedules': SCHEDULE,
  'fire.firings': FIRING,
}
const TIMES: ReadonlySet<string> = new Set([
  ...['runAt', 'until', 'pushedFrom', 'pushedBefore', 'pushedAt', 'dueAt', 'startedAt', 'finishedAt'],
  ...['from', 'expected', 'next'],
])

const LISTS_OF_IDS: ReadonlySet<string> = new Set(['ids', 'after'])

/** @param cursors by a job's id, and `next`, for `after` of a list or of a bulk change */
export function inputOf(op: OperationName, given: Fields, cursors: ReadonlyMap<string, string>): unknown {
  const input: { [name: string]: unknown } = { ...INPUTS[op] }
  for (const [name, value] of Object.entries(given)) {
    const defaults = ITEMS[`${op}.${name}`]
    if ((op === 'list' || op === 'bulk') && name === 'after')
      input[name] = cursors.get(value === 'next' ? 'next' : longId(String(value))) ?? 'of no list'
    // Workers have names of their own, and so have groups and queues.
    else if (op === 'heartbeat' && name === 'gone') input[name] = value
    else if (defaults !== undefined && Array.isArray(value))
      input[name] = value.map((item) => expanded(nested({ ...defaults, ...fieldsOf(item) }), op !== 'heartbeat'))
    else input[name] = expanded(value, true, name)
  }
  return input
}

/** What schedules, firings, journals and parks hold has defaults, too. */
function nested(fields: Fields): Fields {
  const { job, jobs, entries, park } = fields
  if (Array.isArray(entries)) {
    return { ...fields, entries: entries.map((each) => ({ ...ENTRY, ...fieldsOf(each) })) }
  }
  if (park !== undefined) return { ...fields, park: nested({ ...PARK, ...fieldsOf(park) }) }
  if (job !== undefined) return { ...fields, job: { ...SCHEDULED, ...fieldsOf(job) } }
  return Array.isArray(jobs) ? { ...fields, jobs: jobs.map((each) => ({ ...JOB, ...fieldsOf(each) })) } : fields
}

const fieldsOf = (item: Json): Fields => (item !== null && typeof item === 'object' && !Array.isArray(item) ? item : {})

/** @param hasIds `id` is a short id @param name of the value in what it is in */
function expanded(value: Json, hasIds: boolean, name = ''): unknown {
  if (Array.isArray(value))
    return value.map((item) => (LISTS_OF_IDS.has(name) ? longId(String(item)) : expanded(item, hasIds)))
  if (typeof value === 'string') return (name === 'id' || name === 'partOf') && hasIds ? longId(value) : value
  if (typeof value === 'number') return TIMES.has(name) ? EPOCH + value : value
  if (value === null || typeof value !== 'object') return value
  if (typeof value.base64 === 'string')
    return { encoding: value.encoding, body: new Uint8Array(Buffer.from(value.base64, 'base64')) }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expanded(item, hasIds, key)]))
}
