/** Calls that are refused, jobs that fail and stores that fail, on every store: nothing shows a payload. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { batch, coalesce, type Job, Millpond, type StandardSchema } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { gate, inState, onEachStore } from '../api/suite.ts'
import { job } from '../stores/job.ts'
import { until } from '../support/until.ts'
import { assertClean, CANARY, fails, written } from './canary.ts'

/** What a caller without types may pass. */
function anything<T>(value: unknown): T {
  // The one cast of these tests: what is passed is wrong on purpose.
  return value as T
}

const TEXTS = { to: CANARY, list: [CANARY, `a "${CANARY}"`] }
const DATA = { ...TEXTS, bytes: Buffer.from(CANARY) }

/** As some validators do: it repeats what it refuses. */
const REPEATING: StandardSchema = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({
      issues: [
        { message: `must be a number (was ${inspect(value, { breakLength: Infinity })})`, path: [] },
        { message: `Expected string but received "${CANARY}"`, path: ['to'] },
        { message: `"${CANARY}" is not in the list`, path: ['list', 0] },
      ],
    }),
  },
}

/** Payloads that cannot be stored. */
const UNSTORABLE: [title: string, data: unknown][] = [
  ['a function', { ...DATA, f: () => CANARY }],
  ['a symbol', { ...DATA, s: Symbol(CANARY) }],
  ['a Map', new Map([[CANARY, CANARY]])],
  ['an error', new Error(CANARY)],
  ['a promise', Promise.resolve(CANARY)],
  ['a toJSON that throws', { toJSON: () => JSON.parse(CANARY) }],
  [
    'a getter that throws its data',
    anything({
      get to() {
        throw new Error(CANARY)
      },
    }),
  ],
  [
    'a toJSON that throws its data',
    {
      toJSON() {
        throw Object.assign(new Error(CANARY), { data: DATA })
      },
    },
  ],
  ['a large integer', { ...DATA, n: 2n ** 70n }],
  ['a lone surrogate beside bytes', { ...DATA, s: `${CANARY}\uD800` }],
  [
    '__proto__ beside bytes',
    JSON.parse(`{"__proto__": "${CANARY}"}`, (_, value) =>
      typeof value === 'object' ? Object.assign(value, { b: DATA.bytes }) : value,
    ),
  ],
  ['too much', CANARY.repeat(1000)],
  ['too many bytes', Buffer.from(CANARY.repeat(1000))],
]

onEachStore('secrets: refused calls', {
  'payloads that cannot be stored': async ({ open }) => {
    const pond = await open({ maxPayload: 1000 })
    const queue = pond.queue<unknown>('q')
    for (const [title, data] of UNSTORABLE) {
      await fails(`push of ${title}`, () => queue.push(data))
      await fails(`pushMany of ${title}`, () => queue.pushMany([DATA, data]))
    }
  },

  'payloads that do not fit the schema': async ({ open }) => {
    const pond = await open()
    const strict = pond.queue('q', { schema: REPEATING, retry: { attempts: 1 } })
    await fails('push', () => strict.push(TEXTS))
    await fails('pushMany', () => strict.pushMany([TEXTS]))
    await fails('push of a text', () => pond.queue('q', { schema: REPEATING }).push(CANARY))
    // Pushed without the schema, refused before the work.
    const { lines, value } = await written(async () => {
      const { id } = await pond.queue<unknown>('q').push(TEXTS, { attempts: 1 })
      await using _worker = strict.work(() => {})
      return await inState(pond, id, 'dead')
    })
    assertClean(value.error, 'the job’s error')
    assert.ok(
      lines.some((line) => line.includes('SchemaMismatch')),
      lines.join('\n'),
    )
    for (const line of lines) assertClean(line, 'stderr')
  },

  'payloads in the place of options, and options in that of payloads': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    const wrong: [string, () => unknown][] = [
      ['push', () => queue.push(1, anything(CANARY))],
      ['push of a list', () => queue.push(1, anything([CANARY]))],
      ['push of a key that is data', () => queue.push(1, anything({ [`${CANARY}@example.org`]: 1 }))],
      ['push with data as its delay', () => queue.push(1, anything({ delay: { CANARY } }))],
      ['push with data as its key', () => queue.push(1, anything({ key: DATA }))],
      ['push in no transaction', () => queue.push(DATA, { tx: { password: CANARY } })],
      ['push in a text', () => queue.push(DATA, { tx: CANARY })],
      ['pushMany', () => queue.pushMany(anything(CANARY))],
      ['pushMany of an object', () => queue.pushMany(anything(DATA))],
      ['pushMany with each', () => queue.pushMany([1], { each: () => anything(CANARY) })],
      ['pushMany with a list from each', () => queue.pushMany([1], { each: () => anything([CANARY]) })],
      ['work', () => queue.work(anything(CANARY))],
      ['work with options', () => queue.work(() => {}, anything(CANARY))],
      ['requeue', () => queue.requeue(anything(DATA))],
      ['job', () => pond.job(anything(DATA))],
      ['result', () => pond.result(anything(DATA))],
      ['cancel', () => pond.cancel(anything([CANARY]))],
      ['jobs', () => queue.jobs(anything(DATA))],
      ['on', () => pond.on(anything<'dead'>({ CANARY }), () => {})],
      ['on with no function', () => pond.on('dead', anything(CANARY))],
      ['coalesce', () => coalesce(anything<() => 1>(CANARY), { key: () => '' })],
      [
        'coalesce with a pond’s URL',
        () =>
          coalesce(
            () => 1,
            anything<{ key: () => string }>({ key: () => '', shared: `redis://u:${CANARY}@h`, name: 'n' }),
          ),
      ],
      ['a coalesced key', () => coalesce((_: unknown) => 1, { key: (data) => anything(data) })(DATA)],
      ['batch', () => batch(anything<() => []>(CANARY))],
      ['a batch’s answer', () => batch(() => anything(CANARY))(1)],
      ['a batch’s size', () => batch(() => [1], { bytes: 1, size: () => anything(CANARY) })(1)],
    ]
    for (const [title, call] of wrong) await fails(title, call)
  },
})

onEachStore('secrets: jobs', {
  'stored bytes that cannot be read': async ({ url, shared }) => {
    if (!shared) return
    const store = await openStore(url, {})
    await using pond = await Millpond.open(url)
    const queue = pond.queue('emails', { retry: { attempts: 1 } })
    const broken: NewJob['data'][] = [
      { encoding: 'json', body: `{"to": ${CANARY}}` },
      { encoding: 'json', body: `["${CANARY}"` },
      { encoding: 'msgpack', body: Buffer.from(`\xd9\x10${CANARY}`, 'latin1') },
      { encoding: 'msgpack', body: Buffer.from(`\xc1${CANARY}`, 'latin1') },
    ]
    const ids = broken.map(() => crypto.randomUUID())
    await store.operations.push({ jobs: broken.map((data, index) => job({ id: ids[index] ?? '', data })) })
    // Told without what cannot be read; `fails` would look at what is thrown.
    for (const id of ids) assert.deepEqual((await pond.job(id))?.undecodable, ['data'])
    assert.equal((await queue.jobs('waiting')).length, ids.length)
    const { lines } = await written(async () => {
      await using _worker = queue.work(() => {})
      for (const id of ids) await fails('result', () => pond.result(id))
    })
    for (const line of lines) assertClean(line, 'stderr')
    const records = await store.operations.find({ ids })
    for (const record of records) assertClean(record?.error, 'the stored error')
    await store.close()
  },

  'handlers that throw their payload: it is the job’s error, and written nowhere': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q', { retry: { attempts: 2, backoff: () => anything(`${CANARY}`) } })
    const odd: (() => unknown)[] = [
      () => {
        throw new Error(`cannot mail ${CANARY}`)
      },
      () => Promise.reject(CANARY),
      () => Promise.reject(DATA),
      () => ({ result: () => CANARY }),
      () => {
        throw Object.assign(new Error(`x\n    at ${CANARY}`), { name: `x ${CANARY}`, code: `${CANARY} ` })
      },
    ]
    const { lines } = await written(async () => {
      await using _worker = queue.work((each: Job) => odd[Number(each.data)]?.(), { concurrency: 1 })
      for (const index of odd.keys()) {
        const { id } = await queue.push(index, { attempts: 1 })
        await pond.result(id).then(
          () => assert.fail(),
          () => {},
        )
      }
      // The backoff function answers nonsense.
      const { id } = await queue.push(0)
      await until(async () => (await pond.job(id))?.state === 'scheduled')
    })
    assert.ok(lines.length >= 3, 'it is told of')
    for (const line of lines) assertClean(line, 'stderr')
  },

  'attempts and flights that are over': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    const { opened, open: finish } = gate()
    const reasons: unknown[] = []
    const { lines } = await written(async () => {
      await using worker = queue.work(async (_, { signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        await opened
      })
      const late = await queue.push(DATA, { timeout: 20, attempts: 1 })
      await fails('a result that comes late', () => pond.result(late.id, { timeout: 1 }))
      await inState(pond, late.id, 'dead')
      await fails('a result of a job that timed out', () => pond.result(late.id))
      const cancelled = await queue.push(DATA)
      await until(() => worker.load.running === 1)
      await pond.cancel(cancelled.id)
      await fails('a cancelled job', () => pond.result(cancelled.id))
      await until(() => reasons.length === 2)
      finish()
      const slow = coalesce(() => new Promise(() => {}), { key: (key: string) => key, timeout: 20 })
      await fails('a flight', () => slow(CANARY))
    })
    assertClean(reasons, 'the signals’ reasons')
    for (const line of lines) assertClean(line, 'stderr')
    await pond.close()
    await fails('a closed pond', () => queue.push(DATA))
  },

  'a queue that is full': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q', { capacity: 1 })
    await queue.push(DATA)
    await fails('push', () => queue.push(DATA))
    await fails('pushMany', () => queue.pushMany([DATA, DATA]))
  },

  schedules: async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q', { capacity: 1 })
    for (const [title, data] of UNSTORABLE.slice(0, -2)) {
      await fails(`schedule of ${title}`, () => pond.schedule('s', '@yearly', queue, data))
    }
    await fails('schedule of too much', () => pond.schedule('s', '@yearly', queue, CANARY.repeat(10_000)))
    await fails('schedule with data as its line', () => pond.schedule('s', anything(DATA), queue, DATA))
    await fails('schedule with data as its zone', () => pond.schedule('s', '@yearly', queue, 1, anything({ tz: DATA })))
    await fails('schedule in the place of options', () => pond.schedule('s', '@yearly', queue, 1, anything(CANARY)))
    await pond.schedule('s', '@yearly', queue, DATA)
    assertClean(await pond.schedules.list(), 'the list of schedules')
    await pond.schedules.run('s')
    await fails('a schedule whose queue is full', () => pond.schedules.run('s'))
    await fails('pause', () => pond.schedules.pause(anything(DATA)))
  },
})
