/** Random operations as plain data, so that a failing sequence prints and shrinks well. */

import fc from 'fast-check'
import type { HistogramSlice } from '../../src/values/figures/histogram.ts'
import { ALL_MINUTES } from '../../src/values/figures/histogram.ts'
import type { Encoded, JobState } from '../../src/values/jobs/records.ts'
import { JOB_STATES } from '../../src/values/jobs/records.ts'
import type { JobFilter } from '../../src/values/operations/requests.ts'
import type { Rate } from '../../src/values/settings/limits.ts'
import type { QueueSettings } from '../../src/values/settings/settings.ts'

const QUEUES = ['p', 'q'] as const

/** Few ids, keys and queues, so that sequences meet in them often. */
const queue = fc.constantFrom(...QUEUES)
export const IDS: readonly string[] = Array.from(
  { length: 16 },
  // The last digits run backwards: ids must not be what orders jobs.
  (_, i) => `019b76da-a800-7000-8000-0000000000${(99 - i).toString(10)}`,
)
const id = fc.constantFrom(...IDS)
const encoded: fc.Arbitrary<Encoded> = fc.oneof(
  fc.nat(9).map((n) => ({ encoding: 'json' as const, body: String(n) })),
  fc.uint8Array({ maxLength: 3 }).map((body) => ({ encoding: 'bytes' as const, body })),
)
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })

const once = fc.record(
  {
    unique: fc.record(
      { for: fc.constantFrom(3, 60, 400), since: fc.constantFrom('end', 'push') },
      { noNullPrototype: true },
    ),
    replace: fc.constant(true),
    maxWait: fc.constantFrom(0, 20, 100),
    follow: fc.constant(true),
  },
  { requiredKeys: [], noNullPrototype: true },
)

const job = fc.record({
  id,
  queue,
  priority: fc.constantFrom(4, 4, 4, 0, 9),
  delay: fc.constantFrom(0, 0, 0, 5, 40),
  /** Relative to now; the driver makes it a time. */
  runAt: fc.option(fc.integer({ min: -50, max: 50 }), { nil: null, freq: 6 }),
  key: optional(fc.constantFrom('k', 'l')),
  group: fc.constantFrom(null, 'g', 'h', 'i'),
  cost: fc.constantFrom(1, 1, 1, 2, 5),
  attempts: fc.constantFrom(1, 2, 3, null),
  timeout: optional(fc.constant(1_000)),
  trace: optional(fc.constant('t')),
  data: encoded,
  once: fc.option(once, { nil: undefined, freq: 3 }),
  /** Which live jobs, or those before it in the call; the driver names them. The highest: any id. */
  after: fc.option(fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }), { nil: undefined, freq: 2 }),
  onDead: fc.constantFrom('cancel', 'run'),
  partOf: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat(20) }),
})

/** Which of all claims so far, the last being 0; sometimes with a fence that is off. */
const hold = fc.record({ claim: fc.nat(12), off: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, -1) })
const holds = fc.array(hold, { minLength: 1, maxLength: 4 })
const otherQueue = fc.constantFrom(false, false, false, false, false, false, true)
const lease = fc.constantFrom(5, 20, 200, null)
const keep = fc.constantFrom(0, 10, 100, 5_000)

const settings: fc.Arbitrary<QueueSettings> = fc.record(
  {
    queue,
    capacity: fc.constantFrom(null, 1, 3, 6),
    keepDone: keep,
    keepDead: keep,
    paused: fc.constantFrom(false, false, true),
    attempts: fc.integer({ min: 1, max: 3 }),
    timeout: fc.constantFrom(null, 500),
    lease: fc.constantFrom(10, 30),
    // Without jitter, so that the model knows the delay.
    backoff: fc.record(
      { base: fc.constantFrom(0, 7), factor: fc.constantFrom(1, 3), max: fc.constant(40), jitter: fc.constant(0) },
      { noNullPrototype: true },
    ),
  },
  { requiredKeys: ['queue'] },
)

const rate: fc.Arbitrary<Rate | null> = fc.option(
  fc.record(
    { count: fc.constantFrom(1, 3), per: fc.constantFrom(10, 40), burst: fc.constantFrom(null, null, 2) },
    { noNullPrototype: true },
  ),
  { nil: null },
)
const most = fc.constantFrom(null, 1, 2)
const limits: fc.Arbitrary<Partial<QueueSettings>> = fc.record(
  { running: fc.constantFrom(null, null, 2, 4), rate, grouped: fc.constant(true), groupRunning: most, groupRate: rate },
  { requiredKeys: [], noNullPrototype: true },
)

const slice: fc.Arbitrary<HistogramSlice> = fc.record({
  queue,
  priority: fc.constantFrom(4, 9),
  metric: fc.constantFrom('wait', 'run'),
  buckets: fc.dictionary(fc.nat(5).map(String), fc.integer({ min: 1, max: 9 }), { minKeys: 1, noNullPrototype: true }),
})

const change = fc.record(
  { data: encoded, priority: fc.constantFrom(0, 4, 9), delay: fc.constantFrom(0, 5, 40) },
  { requiredKeys: [], noNullPrototype: true },
)
/** Relative to now; the driver makes it a time. */
const dueIn = fc.option(fc.integer({ min: -50, max: 50 }), { nil: undefined, freq: 4 })

const ids = fc.array(id, { minLength: 1, maxLength: 4 })
const state: fc.Arbitrary<JobState> = fc.constantFrom(...JOB_STATES)

/** `text`: a digit of the data. */
const filter: fc.Arbitrary<JobFilter | null> = optional(
  fc.record(
    {
      group: fc.constantFrom('', 'g', 'h'),
      key: fc.constantFrom('k', 'l'),
      errorCode: fc.constant('HandlerFailed'),
      text: fc.constantFrom('1', '2'),
    },
    { requiredKeys: [], noNullPrototype: true },
  ),
)

export const operation = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('push'),
      jobs: fc.array(job, { minLength: 1, maxLength: 4 }),
      whole: fc.constantFrom(false, false, false, true),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('claim'),
      queue,
      limit: fc.integer({ min: 1, max: 4 }),
      lease,
      minPriority: fc.constantFrom(0, 0, 0, 0, 4, 9),
      perGroup: fc.constantFrom(1, 1, 2, 3),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('complete'), otherQueue, holds, result: optional(encoded) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('fail'),
      otherQueue,
      holds,
      delay: fc.constantFrom(0, 0, 5, 40, null, 'backoff' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('release'), otherQueue, holds, pause: fc.constantFrom(0, 0, 0, 7, 30) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant('extend'), otherQueue, holds, lease, progress: optional(encoded) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel'), ids }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('sweep'), limit: fc.constantFrom(1, 2, 100) }) },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('advance'), ms: fc.constantFrom(3, 10, 50, 300, 61_000, 3_600_000) }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('configure'), settings }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('limit'), queue, settings: limits }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('limitGroup'),
      queue,
      group: fc.constantFrom('g', 'h', 'x'),
      limits: optional(
        fc.record({ running: most, rate, weight: fc.constantFrom(0.5, 1, 3) }, { noNullPrototype: true }),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('groups'), queue, limit: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('requeue'), ids }) },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('requeueQueue'), queue, limit: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('record'), slices: fc.array(slice, { minLength: 1, maxLength: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('update'), ids, change, runAt: dueIn }) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ op: fc.constant('bulk'), queue, state, filter, limit: fc.integer({ min: 1, max: 3 }) },
      kind: fc.constantFrom('requeue', 'cancel', 'remove', 'update'),
      priority: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
      runAt: dueIn,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('remove'), ids }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('removeQueue'), queue, limit: fc.constantFrom(1, 3, 100) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('restore'), ids }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('find'), ids }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('relatives'), ids }) },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('list'), queue, state, pages: fc.integer({ min: 1, max: 3 }), filter }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('stats'), minutes: fc.constantFrom(0, 1, 5, 60, ALL_MINUTES) }) },
)

export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never
