/** Graphs on SQLite: long fan-outs go in steps, links go with their jobs, pushes in transactions, files that older versions made. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const FIRST_MIGRATION = new URL('../../contract/sqlite/migrations/001_initial.sql', import.meta.url)
const STEP = 1000

const countsOf = async (store: Store) => (await store.operations.stats({ queue: 'emails' }))[0]?.counts
const statesOf = async (store: Store, ...ids: string[]) =>
  (await store.operations.find({ ids })).map((record) => record?.state ?? null)

/** Rows of the tables of graphs. */
function left(path: string): number {
  const db = connectTo(path)
  const tables = ['links', 'awaited', 'ended']
  const counts = tables.map((table) => db.prepare(`select count(*) as rows from millpond_${table}`).get()?.rows)
  db.close()
  return counts.reduce<number>((sum, rows) => sum + Number(rows), 0)
}

const children = (count: number, given: Partial<NewJob>): NewJob[] =>
  Array.from({ length: count }, (_, index) => job({ id: `child-${index}`, ...given }))

test('a fan-out is settled in steps: each child once, and what is waited for after a step is not settled with it', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ id: 'p' }), ...children(2500, { after: ['p'] })] })
  assert.deepEqual(await store.operations.cancel({ ids: ['p'] }), ['cancelled'])
  assert.equal((await countsOf(store))?.blocked, 2500 - STEP)
  // It lives again: who waits for it from now on has nothing to do with its first end.
  assert.equal((await store.operations.requeue({ ids: ['p'] })).requeued, 1)
  await store.operations.push({ jobs: [job({ id: 'late', after: ['p'] })] })
  const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 1000 })
  assert.deepEqual(
    jobs.map(({ id }) => id),
    ['p'],
  )
  const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
  assert.deepEqual(await store.operations.complete({ queue: 'emails', items }), ['ok'])
  const blocked: (number | undefined)[] = []
  for (let more = true; more; ) {
    more = (await store.operations.sweep({ limit: 10 })).more
    blocked.push((await countsOf(store))?.blocked)
  }
  assert.deepEqual(blocked.slice(0, 2), [501, 0])
  assert.deepEqual(await statesOf(store, 'late', 'child-0', 'child-2499'), ['waiting', 'cancelled', 'cancelled'])
  assert.equal((await store.operations.stats({ queue: 'emails' }))[0]?.totals.cancelled, 2501)
  for (let more = true; more; ) more = (await store.operations.remove({ queue: 'emails', limit: 1000 })).more
  assert.equal(left(path), 0)
})

test('links of a removed parent go in steps, too', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ id: 'p' }), ...children(1500, { after: ['p'], queue: 'others' })] })
  await store.operations.cancel({ ids: ['p'] })
  await store.operations.remove({ ids: ['p'] })
  assert.ok(left(path) > 0)
  assert.equal((await store.operations.sweep({ limit: 10 })).more, true)
  for (let more = true; more; ) more = (await store.operations.sweep({ limit: 10 })).more
  assert.equal(left(path), 0)
})

test('what is left of an end does not touch jobs that get the places of removed ones', async () => {
  const store = await openAt(newPath())
  const push = () => store.operations.push({ jobs: [job({ id: 'p' }), ...children(2500, { after: ['p'] })] })
  await store.operations.push({ jobs: [job({ id: 'first' })] })
  await push()
  await store.operations.cancel({ ids: ['p'] })
  const ids = ['p', ...children(2500, {}).map(({ id }) => id)]
  assert.equal((await store.operations.remove({ ids })).removed, 2501)
  await push()
  await store.operations.sweep({ limit: 10 })
  assert.equal((await countsOf(store))?.blocked, 2500)
})

for (const [what, isFree] of [
  ['most', (index: number) => index % 10 === 0],
  ['few', (index: number) => index % 10 !== 9],
] as const) {
  test(`a long list of jobs of which ${what} wait, in a call of all or none, is as the jobs one by one`, async () => {
    const [one, other] = [await openAt(newPath()), await openAt(newPath())]
    const jobs = Array.from({ length: 200 }, (_, index) => {
      const after = [uuid(Math.floor(index / 2)), uuid(Math.floor(index / 3))]
      return job({ id: uuid(index + 1), group: 'g', after: isFree(index) ? [] : after, onDead: 'run' })
    })
    for (const { operations } of [one, other]) {
      await operations.configure({ queue: 'emails', groupRunning: 300 })
      await operations.push({ jobs: [job({ id: uuid(0) })] })
    }
    await one.operations.push({ jobs, whole: true })
    // They are no list, as an id is shorter.
    await other.operations.push({ jobs: [...jobs, job({ id: 'short', group: 'g' })], whole: true })
    await one.operations.push({ jobs: [job({ id: 'short', group: 'g' })] })
    const ids = jobs.map(({ id }) => id)
    const withoutTimes = async ({ operations }: Store) =>
      (await operations.find({ ids })).map((record) => ({ ...record, pushedAt: 0, dueAt: 0 }))
    assert.deepEqual(await withoutTimes(one), await withoutTimes(other))
    const relatives = await one.operations.relatives({ ids, limit: 100 })
    assert.deepEqual(relatives, await other.operations.relatives({ ids, limit: 100 }))
    assert.deepEqual(await countsOf(one), await countsOf(other))
    const claimed = async ({ operations }: Store) =>
      (await operations.claim({ queue: 'emails', worker: 'w', limit: 300, lease: 1000 })).jobs.map(({ id }) => id)
    const first = await claimed(one)
    assert.deepEqual(first, await claimed(other))
    assert.equal(first.length, jobs.filter(({ after }) => after?.length === 0).length + 2)
  })
}

const uuid = (index: number): string => `0190a0b1-0000-7000-8000-${String(index).padStart(12, '0')}`

test('a push with parents in a transaction: of the caller, and of a handler, which releases its children by its completion', async () => {
  const path = newPath()
  const store = await openAt(path)
  const { transactions } = store
  assert.ok(transactions)
  await store.operations.push({ jobs: [job({ id: 'p' })] })
  const tx = connectTo(path)
  tx.exec('begin')
  const jobs = [job({ id: 'a', after: ['p'] }), job({ id: 'b', after: ['p', 'nobody'] })]
  const outcomes = await transactions.push({ tx, jobs })
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['pushed', 'orphan'],
  )
  const whole = await transactions.push({
    tx,
    jobs: [job({ id: 'c' }), job({ id: 'd', after: ['nobody'] })],
    whole: true,
  })
  assert.deepEqual(
    whole.map(({ status }) => status),
    ['withheld', 'orphan'],
  )
  tx.exec('commit')
  tx.close()
  assert.deepEqual(await statesOf(store, 'a', 'b', 'c', 'd'), ['blocked', null, null, null])
  const { jobs: claimed } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 1000 })
  const handler = transactions.begin('q')
  await transactions.push({ tx: handler.query, jobs: [job({ id: 'e', after: ['p'] }), job({ id: 'f', partOf: 'p' })] })
  assert.deepEqual(
    await handler.complete({ queue: 'emails', items: claimed.map(({ id, fence }) => ({ id, fence, result: null })) }),
    ['ok'],
  )
  // f is part of p: a waits for it, too.
  assert.deepEqual(await statesOf(store, 'a', 'e', 'f'), ['blocked', 'blocked', 'waiting'])
  await store.operations.cancel({ ids: ['f'] })
  assert.deepEqual(await statesOf(store, 'a', 'e'), ['cancelled', 'cancelled'])
})

test('an awaited parent may come into a queue that was not there', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ id: 'a' })] })
  const [record] = await store.operations.find({ ids: ['a'] })
  assert.ok(record)
  const blocked = { ...record, id: 'b', state: 'blocked' as const, after: ['one', 'two'] }
  assert.deepEqual(await store.operations.restore({ records: [blocked] }), ['restored'])
  await store.operations.push({ jobs: [job({ id: 'one', queue: 'new' }), job({ id: 'two', queue: 'newer' })] })
  const [relatives] = await store.operations.relatives({ ids: ['b'], limit: 10 })
  assert.deepEqual(relatives?.parents, ['one', 'two'])
  for (const queue of ['new', 'newer']) {
    const { jobs } = await store.operations.claim({ queue, worker: 'w', limit: 1, lease: 1000 })
    await store.operations.complete({ queue, items: jobs.map(({ id, fence }) => ({ id, fence, result: null })) })
  }
  assert.deepEqual(await statesOf(store, 'b'), ['waiting'])
})

test('a file of the version before is brought up to date, with its jobs', async () => {
  const path = newPath()
  const db = connectTo(path)
  db.exec('create table millpond_meta (key text primary key, value any) strict, without rowid')
  db.exec(readFileSync(FIRST_MIGRATION, 'utf8'))
  db.exec(`
    insert into millpond_meta values ('version', 1);
    insert into millpond_queues (name) values ('emails');
    insert into millpond_counts values ('emails', 'state', 'waiting', 1);
    insert into millpond_jobs (id, queue, state, priority, attempts, pushed_at, due_at, key, encoding, data)
      values ('old', 'emails', 'waiting', 4, 1, 0, 0, 'k', 'json', '1');
  `)
  db.close()
  const store = await openAt(path)
  const outcomes = await store.operations.push({ jobs: [job({ id: 'new', after: ['old'] }), job({ key: 'k' })] })
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['pushed', 'existing'],
  )
  await store.operations.remove({ ids: ['old'] })
  assert.deepEqual(await statesOf(store, 'new'), ['cancelled'])
})
