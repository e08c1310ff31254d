/** Other programs empty, drop or copy the tables, as test suites and deployments do: repaired, or refused with a code. Nothing that is acknowledged then is lost. */
import assert from 'node:assert/strict'
import type { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { isMillpondError } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const TABLES = [
  'meta',
  'queues',
  'counts',
  'jobs',
  'workers',
  'histograms',
  'groups',
  'turns',
  'virtual',
  'schedules',
  'remembered',
  'links',
  'awaited',
  'ended',
  'journals',
  'entries',
  'kept',
  'gone',
]
const claim = async (store: Store) =>
  (await store.operations.claim({ queue: 'emails', worker: 'w', limit: 10, lease: 60_000 })).jobs
const countsOf = async (store: Store) => (await store.operations.stats({ queue: 'emails' }))[0]?.counts

function change(path: string, work: (db: DatabaseSync) => void): void {
  const db = connectTo(path)
  db.exec('pragma busy_timeout = 5000')
  work(db)
  db.close()
}

/** A queue with limits, groups and capacity, and a job in it for each state. */
async function filled(path: string): Promise<Store> {
  const store = await openAt(path)
  const limits = { running: 3, groupRunning: 3 }
  await store.operations.configure({ queue: 'emails', capacity: 3, ...limits })
  await store.operations.push({ jobs: [job({ group: 'g' })] })
  const [done] = await claim(store)
  assert.ok(done)
  await store.operations.complete({ queue: 'emails', items: [{ id: done.id, fence: done.fence, result: null }] })
  await store.operations.push({ jobs: [job({ group: 'g' })] })
  assert.equal((await claim(store)).length, 1)
  await store.operations.push({ jobs: [job({ group: 'g' }), job(), job({ delay: 100_000 })] })
  return store
}

const orders: Record<string, readonly string[]> = {
  'all tables': TABLES,
  'all tables, backwards': TABLES.toReversed(),
  'jobs alone': ['jobs'],
  'queues alone': ['queues'],
}
for (const [what, tables] of Object.entries(orders)) {
  test(`${what} emptied while it is open: counts are right, limits hold, jobs that come then run`, async () => {
    const path = newPath()
    const store = await filled(path)
    change(path, (db) => {
      for (const table of tables) db.exec(`delete from millpond_${table}`)
    })
    await store.operations.sweep({ limit: 1000 })
    // None of the capacity of 3 is taken by jobs that are gone.
    const jobs = [job({ group: 'g' }), job({ group: 'g' }), job({ group: 'h' })]
    assert.deepEqual(
      (await store.operations.push({ jobs })).map(({ status }) => status),
      ['pushed', 'pushed', 'pushed'],
    )
    assert.deepEqual(
      await store.operations.push({ jobs: [job()] }).then(([one]) => one?.status),
      'full',
      'the capacity is known still',
    )
    assert.deepEqual(await countsOf(store), {
      blocked: 0,
      scheduled: 0,
      waiting: 3,
      running: 0,
      done: 0,
      dead: 0,
      cancelled: 0,
    })
    const claimed = await claim(store)
    assert.deepEqual(claimed.map(({ id }) => id).sort(), jobs.map(({ id }) => id).sort())
    assert.deepEqual(await store.operations.push({ jobs: [job()] }).then(([one]) => one?.status), 'pushed')
    assert.deepEqual(await claim(store), [], 'the limit is known still')
    await store.close()
    const again = await openAt(path)
    assert.equal((await countsOf(again))?.running, 3)
    await again.close()
  })
}

test('settings are not given again to a queue that another process has removed', async () => {
  const path = newPath()
  const [store, remover] = [await openAt(path), await openAt(path)]
  await store.operations.configure({ queue: 'emails', capacity: 1, attempts: 7 })
  await store.operations.push({ jobs: [job()] })
  assert.deepEqual(await remover.operations.remove({ queue: 'emails', limit: 10 }), { removed: 1, more: false })
  const outcomes = await store.operations.push({ jobs: [job(), job()] })
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['pushed', 'pushed'],
  )
  const report = await store.operations.settings({ queue: 'emails' })
  assert.deepEqual(report?.code, {})
  assert.notEqual(report?.values.attempts, 7)
  await Promise.all([store.close(), remover.close()])
})

test('emptied between two runs: fences go on rising', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ id: 'one' })] })
  const [before] = await claim(store)
  await store.close()
  change(path, (db) => {
    for (const table of TABLES) db.exec(`delete from millpond_${table}`)
  })
  const again = await openAt(path)
  await again.operations.push({ jobs: [job({ id: 'one' })] })
  const [after] = await claim(again)
  assert.ok(before && after && after.fence > before.fence)
  assert.deepEqual(
    await again.operations.complete({ queue: 'emails', items: [{ id: 'one', fence: before.fence, result: null }] }),
    ['stale'],
  )
  await again.close()
})

test('a copy of the schema alone is opened as an empty store', async () => {
  const [path, copy] = [newPath(), newPath()]
  await (await filled(path)).close()
  const from = connectTo(path)
  const schema = from.prepare("select sql from sqlite_schema where sql is not null and name not like 'sqlite_%'").all()
  from.close()
  change(copy, (db) => {
    for (const { sql } of schema) db.exec(String(sql))
  })
  const store = await openAt(copy)
  await store.operations.push({ jobs: [job()] })
  assert.equal((await claim(store)).length, 1)
  await store.close()
})

const corrupt = (error: unknown) =>
  isMillpondError(error, 'StoreCorrupt') && /tables of Millpond are missing/.test(error.message)

test('tables that are missing, or other ones without a version, are StoreCorrupt: at open, and while it is open', async () => {
  const path = newPath()
  const store = await filled(path)
  change(path, (db) => db.exec('drop table millpond_jobs'))
  await assert.rejects(store.operations.push({ jobs: [job()] }), corrupt)
  await assert.rejects(claim(store), corrupt)
  await store.close()
  await assert.rejects(openAt(path), corrupt)
  const other = newPath()
  change(other, (db) => db.exec('create table millpond_jobs (id)'))
  await assert.rejects(openAt(other), corrupt)
  const all = newPath()
  await (await filled(all)).close()
  change(all, (db) => {
    for (const view of ['readable', 'limits', 'heads']) db.exec(`drop view millpond_${view}`)
    for (const table of TABLES) db.exec(`drop table millpond_${table}`)
  })
  const anew = await openAt(all)
  await anew.operations.push({ jobs: [job()] })
  assert.equal((await claim(anew))[0]?.attempt, 1)
  await anew.close()
})

test('in a file whose texts are UTF-16, jobs that are pushed together keep their ids', async () => {
  const path = newPath()
  change(path, (db) => db.exec(`pragma encoding = 'UTF-16'; create table own (text text)`))
  const store = await openAt(path)
  const jobs = [job({ id: newId(), fresh: true }), job({ id: newId(), fresh: true })]
  await store.operations.push({ jobs })
  assert.deepEqual(
    (await claim(store)).map(({ id }) => id),
    jobs.map(({ id }) => id),
  )
})
