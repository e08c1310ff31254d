/** One rogue job, by plain SQL: refused with a code, or delivered; never in the way of the others. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { dropSchema, job, newSchema, openPostgres, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const LARGEST = 16_777_216
const request = { queue: 'emails', worker: 'w', limit: 10, lease: 60_000 }

/** An error of the server: its SQLSTATE, and the code that its message begins with or the constraint. */
const refused = (state: string, named: string) => (error: unknown) => {
  assert.ok(error instanceof Error && 'code' in error && 'constraint' in error, String(error))
  assert.equal(error.code, state, error.message)
  assert.equal(error.constraint ?? error.message.split(':')[0], named)
  return true
}

describe('a push by plain SQL', { skip }, () => {
  test('is refused with a code if its data is too large, in whatever function', () =>
    withStore(async (store, schema) => {
      const text = `repeat('"', ${LARGEST})`
      await assert.rejects(
        server(`select ${schema}.push('emails', to_json(${text}))`),
        refused('MP002', 'PayloadTooLarge'),
      )
      const bad = [
        [`push_list('emails', array[gen_random_uuid()], array[repeat('"', ${LARGEST + 1})])`, 'payload_too_large'],
        [
          `push_jobs(json_build_array(json_build_object('id', gen_random_uuid(), 'queue', 'emails', 'priority', 4,
            'data', 'j' || repeat('x', ${LARGEST + 1}))))`,
          'payload_too_large',
        ],
      ] as const
      for (const [call, constraint] of bad) {
        await assert.rejects(server(`select ${schema}.${call}`), refused('23514', constraint), call.slice(0, 40))
      }
      await assert.rejects(
        server(`select ${schema}.push('emails', '1', trace => repeat('x', 600))`),
        refused('22023', 'InvalidOption'),
      )
      assert.deepEqual((await store.operations.claim(request)).jobs, [])
    }))

  test('is refused with a code if it holds half of a surrogate pair', () =>
    withStore(async (store, schema) => {
      const bad = [
        String.raw`"caf\ud83d"`,
        String.raw`{"a":["\uDE00"]}`,
        String.raw`{"\ud83d":1}`,
        String.raw`"\\\ud83d"`,
        String.raw`"\ude00\ud83d"`,
        String.raw`"\ud83d\ud83d\ude00"`,
      ]
      for (const data of bad) {
        for (const type of ['text', 'json']) {
          await assert.rejects(
            server(`select ${schema}.push('emails', $1::${type})`, [data]),
            refused('MP003', 'PayloadNotEncodable'),
            data,
          )
        }
      }
      const good = [String.raw`"\ud83d\ude00"`, String.raw`"\\ud83d"`, String.raw`"\\\ud83d\ude00\uD83D\uDE00"`, '"😀"']
      for (const data of good) await server(`select ${schema}.push('emails', $1::json)`, [data])
      const { jobs } = await store.operations.claim(request)
      assert.deepEqual(
        jobs.map(({ data }) => data.body),
        good,
      )
    }))
})

test('the largest job of quotes is delivered, and found with progress as large', { skip, timeout: 120_000 }, () =>
  withStore(async (store, schema) => {
    const id = newId()
    // Each of these takes two bytes as JSON. That of a control character takes six, and six times as long.
    const worst = `repeat('"', ${LARGEST})`
    await server(`select ${schema}.push_list('emails', array[$1::uuid], array[${worst}])`, [id])
    const innocent = job()
    await store.operations.push({ jobs: [innocent] })
    const [first] = (await store.operations.claim(request)).jobs
    assert.equal(first?.id, id)
    assert.equal(first.data.body.length, LARGEST)
    const [next] = (await store.operations.claim(request)).jobs
    assert.equal(next?.id, innocent.id)
    await server(
      `select ${schema}.extend('emails', 60000, array[$1::uuid], array[$2::integer], array['j' || ${worst}])`,
      [id, first.fence],
    )
    const [found, other] = await store.operations.find({ ids: [id, innocent.id] })
    assert.equal(found?.data.body.length, LARGEST)
    assert.equal(found.progress?.body.length, LARGEST)
    assert.equal(other?.data.body, innocent.data.body)
    await assert.rejects(
      server(
        `select ${schema}.complete('emails', array[$1::uuid], array[$2::integer], array['j' || ${worst} || 'x'])`,
        [id, first.fence],
      ),
      refused('23514', 'result_too_large'),
    )
  }),
)

test('an error that is too large is told as such, and its neighbours fail as they should', { skip }, () =>
  withStore(async (store) => {
    await store.operations.push({ jobs: [job(), job()] })
    const [one, two] = (await store.operations.claim(request)).jobs
    assert.ok(one !== undefined && two !== undefined)
    const error = { code: 'HandlerFailed', name: 'Error', message: 'short' }
    const outcomes = await store.operations.fail({
      queue: 'emails',
      items: [
        { ...one, delay: null, error: { ...error, message: 'x'.repeat(2_000_000) } },
        { ...two, delay: null, error },
      ],
    })
    assert.deepEqual(outcomes, ['dead', 'dead'])
    const records = await store.operations.find({ ids: [one.id, two.id] })
    assert.deepEqual(
      records.map((record) => record?.error?.code),
      ['PayloadTooLarge', 'HandlerFailed'],
    )
  }),
)

test('maxPayload may be no larger than what the store keeps', { skip }, async () => {
  await assert.rejects(
    Millpond.open(urlOf('postgres'), { maxPayload: LARGEST + 1 }),
    (error: unknown) => isMillpondError(error, 'InvalidOption') && /maxPayload/.test(error.message),
  )
})

/** Each job that is claimed takes so many ms, as a large one does on a slow disk. */
async function slow(schema: string, ms: number): Promise<void> {
  await server(`create function ${schema}.slow() returns trigger language plpgsql as
    $$ begin perform pg_sleep(${ms} / 1000.0); return new; end $$`)
  await server(`create trigger slow before insert on ${schema}.running for each row execute function ${schema}.slow()`)
}

for (const limits of [{}, { grouped: true, groupRunning: 5 } as const]) {
  const kind = 'grouped' in limits ? 'of a queue with limits' : 'of a queue'
  test(`claims ${kind} that take longer than half their lease are undone, but not those of one job`, { skip }, () =>
    undone(limits),
  )
}

async function undone(limits: { grouped?: true; groupRunning?: number }): Promise<void> {
  const { store, schema, dispose } = await openPostgres(urlOf('postgres'))
  try {
    await store.operations.configure({ queue: 'emails', ...limits })
    await slow(schema, 1100)
    await store.operations.push({ jobs: [job(), job()] })
    const brief = { ...request, lease: 2000 }
    await assert.rejects(
      store.operations.claim({ ...brief, limit: 2 }),
      (error: unknown) => isMillpondError(error, 'StoreBusy') && /half its lease/.test(error.message),
    )
    const { jobs } = await store.operations.claim({ ...brief, limit: 1 })
    assert.deepEqual(
      jobs.map(({ attempt }) => attempt),
      [1],
    )
  } finally {
    await dispose()
  }
}

test('a worker whose claims are undone asks for fewer, so that the queue goes on', {
  skip,
  timeout: 60_000,
}, async () => {
  const schema = newSchema()
  const pond = await Millpond.open(urlOf('postgres'), { schema })
  pond.on('error', () => {})
  try {
    const queue = pond.queue('emails', { lease: '2s' })
    await queue.pushMany([1, 2, 3, 4])
    await slow(schema, 600)
    const done: unknown[] = []
    queue.work(({ data }) => void done.push(data), { concurrency: 10 })
    await until(async () => done.length === 4, 'all are done')
  } finally {
    await pond.close()
    await dropSchema(schema)
  }
})
