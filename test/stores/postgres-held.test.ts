/** An application's open transaction holds what an operation needs: all else goes through, and what is held is told by whom. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { isMillpondError, Millpond, type MillpondError } from '../../src/index.ts'
import type { Operations } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import type { ClaimedJob, NewJob } from '../../src/values/jobs/records.ts'
import { missingReason } from '../servers/shared.ts'
import { ERROR, recordOf } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { dropSchema, giveBackSchema, job, newSchema, server, takeSchema, urlOf } from './postgres-fixture.ts'

/** So that what is held fails soon. */
const TIMEOUT = 1200

interface Scene {
  operations: Operations
  schema: string
  /** In an open transaction. */
  application: pg.Client
  pid: number
  /** Pushes in that transaction. */
  hold: (...jobs: NewJob[]) => Promise<void>
}

const scene = (body: (scene: Scene) => Promise<void>) => async () => {
  const schema = takeSchema()
  const { operations, close } = await open(urlOf('postgres'), { schema, timeout: TIMEOUT })
  const application = new pg.Client({ connectionString: urlOf('postgres') })
  await application.connect()
  const { rows } = await application.query('select pg_backend_pid() as pid')
  const hold = async (...jobs: NewJob[]) => {
    const sent = jobs.map((each) => ({ ...each, data: `j${each.data.body}` }))
    await application.query(`select ${schema}.push_graph($1, false)`, [JSON.stringify(sent)])
  }
  try {
    await operations.configure({ queue: 'emails', keepDone: 0 })
    await application.query('begin')
    await body({ operations, schema, application, pid: rows[0].pid, hold })
  } finally {
    await application.end()
    await close()
    await giveBackSchema(schema)
  }
}

const claim = async (operations: Operations, jobs: NewJob[]): Promise<ClaimedJob[]> => {
  await operations.push({ jobs })
  return (await operations.claim({ queue: 'emails', worker: 'w', limit: jobs.length, lease: 60_000 })).jobs
}

const holdOf = ({ id, fence }: ClaimedJob) => ({ id, fence })

/** Jobs that are dead. */
const dead = async (operations: Operations, jobs: NewJob[]): Promise<string[]> => {
  const claimed = await claim(operations, jobs)
  const items = claimed.map((each) => ({ ...holdOf(each), error: ERROR, delay: null }))
  await operations.fail({ queue: 'emails', items })
  return jobs.map(({ id }) => id)
}

const stateOf = async (operations: Operations, id: string | undefined) =>
  (await operations.find({ ids: [id ?? ''] }))[0]?.state

const isHeldBy = (pid: number) => (error: unknown) => {
  assert.ok(isMillpondError(error, 'StoreBusy') && error.retryable)
  assert.match(error.message, new RegExp(`process ${pid} .*idle in transaction`))
  return true
}

describe('beside a transaction of the application that holds', { skip: missingReason('postgres') }, () => {
  for (const [what, pushed] of [
    ['a follower', (key: string) => ({ key, once: { follow: true } })],
    ['a child', (_: string, id: string) => ({ after: [id] })],
  ] as const)
    for (const kind of ['complete', 'fail', 'release'] as const)
      test(
        `a running job's row, for ${what}: ${kind} ends all others, and that one when it can`,
        scene(async ({ operations, application, pid, hold }) => {
          const claimed = await claim(operations, [job({ key: 'k' }), job(), job(), job(), job()])
          await hold(job(pushed('k', claimed[0]?.id ?? '')))
          const end = (some: ClaimedJob[], deferred: boolean) => {
            const items = some.map(holdOf)
            if (kind === 'complete') {
              const completions = items.map((each) => ({ ...each, result: null }))
              return operations.complete({ queue: 'emails', items: completions, deferred })
            }
            if (kind === 'release') return operations.release({ queue: 'emails', items, deferred })
            const failures = items.map((each) => ({ ...each, error: ERROR, delay: 0 }))
            return operations.fail({ queue: 'emails', items: failures, deferred })
          }
          const ended = kind === 'fail' ? 'retry' : 'ok'
          assert.deepEqual(await end(claimed.slice(0, 3), true), ['held', ended, ended])
          await assert.rejects(end([...claimed.slice(3), ...claimed.slice(0, 1)], false), isHeldBy(pid))
          assert.deepEqual(await end(claimed, true), ['held', 'stale', 'stale', 'stale', 'stale'])
          const ending = end(claimed.slice(0, 1), false)
          await application.query('commit')
          assert.deepEqual(await ending, [ended])
        }),
      )

  for (const change of ['cancel', 'update', 'remove'] as const)
    test(
      `a job: ${change} changes the others, and tells who holds it`,
      scene(async ({ operations, application, pid, hold }) => {
        const jobs = [job(), job({ key: 'k' }), job()]
        const ids = jobs.map(({ id }) => id)
        await operations.push({ jobs })
        await hold(job({ key: 'k', once: { replace: true } }))
        const run = () =>
          change === 'update'
            ? operations.update({ items: ids.map((id) => ({ id, priority: 7 })) })
            : operations[change]({ ids })
        await assert.rejects(run(), isHeldBy(pid))
        const changed = async (id: string) => {
          const [record] = await operations.find({ ids: [id] })
          return change === 'update' ? record?.priority === 7 : record?.state !== 'waiting'
        }
        assert.deepEqual(await Promise.all(ids.map(changed)), [true, false, true])
        await application.query('commit')
        await run()
        assert.deepEqual(await Promise.all(ids.map(changed)), [true, true, true])
      }),
    )

  test(
    'a key: requeue and restore bring back the others, and tell who holds it',
    scene(async ({ operations, pid, application, hold }) => {
      const ids = await dead(operations, [job(), job({ key: 'k' }), job({ key: 'other' })])
      await hold(job({ key: 'k' }))
      await assert.rejects(operations.requeue({ ids }), isHeldBy(pid))
      assert.deepEqual(await Promise.all(ids.map((id) => stateOf(operations, id))), ['waiting', 'dead', 'waiting'])
      const records = [recordOf({ queue: 'emails', key: 'k' }), recordOf({ queue: 'emails', key: 'third' })]
      await assert.rejects(operations.restore({ records }), isHeldBy(pid))
      assert.equal(await stateOf(operations, records[1]?.id), 'waiting')
      await application.query('rollback')
      assert.equal((await operations.requeue({ ids })).requeued, 1)
    }),
  )

  for (const how of ['requeue', 'bulk'] as const)
    test(
      `a key: ${how} of a queue's dead jobs leaves that one`,
      scene(async ({ operations, application, hold }) => {
        const ids = await dead(operations, [job(), job({ key: 'k' }), job({ key: 'other' })])
        await hold(job({ key: 'k' }))
        const run = async () => {
          if (how === 'requeue') return (await operations.requeue({ queue: 'emails', limit: 100 })).requeued
          const step = { queue: 'emails', state: 'dead', change: { kind: 'requeue' }, limit: 100 } as const
          return (await operations.bulk(step)).changed
        }
        assert.equal(await run(), 2)
        assert.equal(await stateOf(operations, ids[1]), 'dead')
        await application.query('rollback')
        assert.equal(await run(), 1)
      }),
    )

  test(
    'a schedule: other declarations go through, and it is told who holds it',
    scene(async ({ operations, schema, pid, application }) => {
      const declared = (version: string) =>
        ['s1', 's2', 's3'].map((name) => ({
          ...{ name, version, when: '@daily', tz: 'UTC', missed: 'once' as const, jitter: 0, from: null, until: null },
          ...{ paused: false, again: false },
          job: { queue: 'emails', priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null, data },
        }))
      const { data } = job()
      await operations.declare({ schedules: declared('1') })
      await application.query(`update ${schema}.schedules set paused = paused where name = 's2'`)
      await assert.rejects(operations.declare({ schedules: declared('2') }), isHeldBy(pid))
      const versions = (await operations.schedules({ limit: 10 })).map(({ version }) => version)
      assert.deepEqual(versions, ['2', '1', '2'])
      await assert.rejects(operations.pauseSchedule({ name: 's2', paused: true }), isHeldBy(pid))
      assert.equal(await operations.pauseSchedule({ name: 's1', paused: true }), true)
      const [, , third] = await operations.schedules({ limit: 10 })
      const next = third?.nextAt ?? 0
      const firing = { name: 's3', version: '2', expected: next, next: next + 1, jobs: [job()] }
      assert.deepEqual((await operations.fire({ firings: [firing] }))[0]?.status, 'fired')
      assert.equal((await operations.sweep({ limit: 10 })).lost.length, 0)
    }),
  )

  for (const [what, held] of [
    ['its key', [job({ key: 'k' }), job({ key: 'k' })]],
    ['its follower', [job({ key: 'k', once: { replace: true } })]],
  ] as const)
    test(
      `a running job's ${what.slice(4)}: the sweep does all else, and that job when it can`,
      scene(async ({ operations, schema, application, hold }) => {
        const [first] = await claim(operations, [job({ key: 'k', attempts: 1 }), job({ attempts: 1 })])
        const follower = job({ key: 'k', once: { follow: true } })
        if (what === 'its follower') await operations.push({ jobs: [follower] })
        const child = job({ after: [first?.id ?? ''] })
        await operations.push({ jobs: [child, job({ delay: 1 })] })
        await hold(...held)
        await server(`update ${schema}.running set lease_until = 0`)
        const swept = await operations.sweep({ limit: 100 })
        assert.equal(swept.lost.length, 1)
        await until(async () => (await stateOf(operations, child.id)) === 'blocked', 'its child waits')
        await application.query('rollback')
        const { lost } = await operations.sweep({ limit: 100 })
        assert.deepEqual(lost, [{ id: first?.id, queue: 'emails', attempt: 1, state: 'dead' }])
        assert.equal(await stateOf(operations, child.id), 'cancelled')
      }),
    )

  test(
    'the key of a child that is to be cancelled: the sweep settles all else, and that one when it can',
    scene(async ({ operations, application, hold, schema }) => {
      const parents = [job({ attempts: 1 }), job({ attempts: 1 })]
      const claimed = await claim(operations, parents)
      const children = parents.map(({ id }, i) => job({ after: [id], key: `k${i}` }))
      await operations.push({ jobs: children })
      await hold(job({ key: 'k0' }), job({ key: 'k0' }))
      await server(`update ${schema}.running set lease_until = 0`)
      assert.equal((await operations.sweep({ limit: 100 })).lost.length, claimed.length)
      const states = () => Promise.all(children.map(({ id }) => stateOf(operations, id)))
      assert.deepEqual(await states(), ['blocked', 'cancelled'])
      await application.query('rollback')
      await operations.sweep({ limit: 100 })
      assert.deepEqual(await states(), ['cancelled', 'cancelled'])
    }),
  )

  for (const [what, held] of [
    ['a key', job({ key: 'new' })],
    ['the room of a queue', job({ queue: 'small' })],
    ['a waiting job', job({ key: 'k', once: { replace: true } })],
  ] as const)
    test(
      `${what}: claims and settings go on`,
      scene(async ({ operations, hold }) => {
        await operations.configure({ queue: 'small', capacity: 10 })
        await operations.push({ jobs: [job({ key: 'k' }), job(), job({ queue: 'small' })] })
        await hold(held)
        const free = what === 'a waiting job' ? 1 : 2
        const claims = { worker: 'w', limit: 10, lease: 60_000 }
        assert.equal((await operations.claim({ queue: 'emails', ...claims })).jobs.length, free)
        assert.equal((await operations.claim({ queue: 'small', ...claims })).jobs.length, 1)
        await operations.configure({ queue: 'small', capacity: 20, groupRunning: 3 })
        await operations.configure({ queue: 'emails', attempts: 4, running: 5 })
        await operations.limitGroup({ queue: 'emails', group: 'g', limits: { running: 1, rate: null, weight: 1 } })
        assert.equal((await operations.sweep({ limit: 10 })).lost.length, 0)
      }),
    )
})

test('a worker tells the store all other endings while one is held, and who holds it', {
  skip: missingReason('postgres'),
}, async () => {
  const schema = newSchema()
  const pond = await Millpond.open(urlOf('postgres'), { schema, timeout: TIMEOUT })
  const application = new pg.Client({ connectionString: urlOf('postgres') })
  await application.connect()
  try {
    const troubles: MillpondError[] = []
    pond.on('error', (error) => troubles.push(error))
    const jobs = pond.queue<number>('emails', { lease: '1m' })
    const gate = Promise.withResolvers<void>()
    const began: number[] = []
    const worker = jobs.work(
      async ({ data }) => {
        began.push(data)
        if (data < 10) await gate.promise
      },
      { concurrency: 20 },
    )
    const pushed = await jobs.pushMany(Array.from({ length: 10 }, (_, i) => i))
    await until(() => began.length === 10, 'all run')
    const { rows } = await application.query('select pg_backend_pid() as pid')
    await application.query('begin')
    await application.query(`select from ${schema}.running where id = $1 for key share`, [pushed[3]?.id])
    gate.resolve()
    const done = async () => (await jobs.stats()).counts.done
    await until(async () => (await done()) === 9, 'the others are done')
    await jobs.pushMany(Array.from({ length: 20 }, (_, i) => 10 + i))
    await until(async () => (await done()) === 29, 'later ones are done')
    await until(() => troubles.length > 0, 'it is told')
    assert.ok(
      troubles.every(({ code, message }) => code === 'StoreBusy' && message.includes(`process ${rows[0].pid} `)),
    )
    await application.query('commit')
    await until(async () => (await done()) === 30, 'it is done, too')
    await worker.close()
  } finally {
    await application.end()
    await pond.close({ timeout: 0 })
    await dropSchema(schema)
  }
})
