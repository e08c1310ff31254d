/** One rogue job, written into the file by another program: refused by the schema, or delivered; never in the way of the others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/values/jobs/ids.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const LARGEST = 16_777_216
const MIB = 1_048_576
const request = { queue: 'emails', worker: 'w', limit: 500, lease: 60_000 }

test('sqlite: what is too large is refused by the schema, whoever writes it, with a code', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ data: { encoding: 'bytes', body: new Uint8Array(LARGEST) } })] })
  const data = { encoding: 'bytes', body: new Uint8Array(LARGEST + 1) } as const
  await assert.rejects(store.operations.push({ jobs: [job({ data })] }), { code: 'PayloadTooLarge' })
  const other = connectTo(path)
  const insert = other.prepare(
    `insert into millpond_jobs (id, queue, state, priority, attempts, pushed_at, due_at, encoding, data)
     values (?, 'emails', 'waiting', 4, 1, 0, 0, 'json', ?)`,
  )
  assert.throws(() => insert.run(newId(), '"'.repeat(LARGEST + 1)), /payload_too_large/)
  assert.throws(() => other.exec(`update millpond_jobs set progress = zeroblob(${LARGEST + 1})`), /progress_too_large/)
  assert.throws(() => other.exec(`update millpond_jobs set result = zeroblob(${LARGEST + 1})`), /result_too_large/)
  other.close()
  const [claimed] = (await store.operations.claim(request)).jobs
  assert.equal(claimed?.data.body.length, LARGEST)
})

test('sqlite: a claim ends with the job that makes it 16 MiB; the rest can be had at once', async () => {
  const store = await openAt(newPath())
  const large = Array.from({ length: 40 }, () => job({ data: { encoding: 'bytes', body: new Uint8Array(MIB) } }))
  const small = [job(), job()]
  await store.operations.push({ jobs: [...small, ...large] })
  const ids = [...small, ...large].map(({ id }) => id)
  const first = await store.operations.claim(request)
  assert.equal(first.retryAfter, 0)
  assert.deepEqual(
    first.jobs.map(({ id }) => id),
    ids.slice(0, 18),
  )
  const second = await store.operations.claim(request)
  const third = await store.operations.claim(request)
  assert.deepEqual(
    [...second.jobs, ...third.jobs].map(({ id }) => id),
    ids.slice(18),
  )
  assert.equal(third.retryAfter, null)
  const [stats] = await store.operations.stats({ queue: 'emails', minutes: 0 })
  assert.deepEqual([stats?.counts.waiting, stats?.counts.running], [0, ids.length])
})

test('sqlite: the same in a queue with limits, whose rate is charged for the jobs that came', async () => {
  const store = await openAt(newPath(), { clock: () => 1_000_000 })
  await store.operations.configure({ queue: 'emails', rate: { count: 100, per: 1000, burst: 25 }, grouped: true })
  const large = Array.from({ length: 30 }, () => job({ data: { encoding: 'bytes', body: new Uint8Array(MIB) } }))
  await store.operations.push({ jobs: large })
  const first = await store.operations.claim(request)
  assert.deepEqual([first.jobs.length, first.retryAfter], [16, 0])
  const second = await store.operations.claim(request)
  assert.deepEqual([second.jobs.length, second.retryAfter], [9, 10])
})

test('sqlite: a job of no known encoding, or with data that is no text, fails by itself', async () => {
  const path = newPath()
  const store = await openAt(path)
  const jobs = [job(), job(), job()]
  await store.operations.push({ jobs })
  const other = connectTo(path)
  other.prepare(`update millpond_jobs set encoding = 'xml' where id = ?`).run(jobs[0]?.id ?? '')
  other.prepare(`update millpond_jobs set data = 7 where id = ?`).run(jobs[1]?.id ?? '')
  other.close()
  assert.equal((await store.operations.find({ ids: jobs.map(({ id }) => id) })).length, 3)
  assert.equal((await store.operations.list({ queue: 'emails', state: 'waiting', limit: 10 })).jobs.length, 3)
  const claimed = (await store.operations.claim(request)).jobs
  assert.deepEqual(
    claimed.map(({ data }) => data.body),
    ['', '', jobs[2]?.data.body],
  )
})
