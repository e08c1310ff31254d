/** Journals in a file that others use, too. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { Hold } from '../../src/values/jobs/records.ts'
import { until } from '../support/until.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const ENTRY = { name: '=a', meta: '{}', body: null }
const PARK = { until: null, signals: 0, after: [], entries: [], reason: '{}' }

async function running(store: Store): Promise<Hold> {
  await store.operations.push({ jobs: [job()] })
  const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })
  assert.ok(jobs[0])
  return jobs[0]
}
const add = async (store: Store, hold: Hold, name = ENTRY.name) =>
  (await store.operations.journal({ queue: 'emails', items: [{ ...hold, entries: [{ ...ENTRY, name }] }] }))[0]
const read = async (store: Store, { id }: Hold) =>
  (await store.operations.entries({ items: [{ id, after: 0 }] }))[0]?.entries.map(({ name }) => name)

function rows(path: string, sql: string): unknown[] {
  const db = connectTo(path)
  db.exec('pragma busy_timeout = 5000')
  const found = db.prepare(sql).all()
  db.close()
  return found.map((row) => Object.values(row))
}

test('a job that gets the place of another one has none of its entries, whoever removed that one', async () => {
  const path = newPath()
  const store = await openAt(path)
  const places: unknown[] = []
  for (const remove of [
    ({ id }: Hold) => store.operations.remove({ ids: [id] }),
    async () => rows(path, 'delete from millpond_jobs'),
    async () => rows(path, 'delete from millpond_queues'),
  ]) {
    const hold = await running(store)
    assert.equal(await add(store, hold), 'ok')
    places.push(...rows(path, 'select job from millpond_entries'))
    await remove(hold)
    assert.deepEqual(rows(path, 'select job from millpond_entries union all select job from millpond_journals'), [])
    const next = await running(store)
    places.push(...rows(path, 'select seq from millpond_jobs'))
    assert.deepEqual(await read(store, next), [])
    await store.operations.remove({ ids: [next.id] })
  }
  assert.deepEqual(new Set(places.flat()), new Set([1]))
})

test('entries of which another program has emptied the tables can be written again', async () => {
  const path = newPath()
  const store = await openAt(path)
  const hold = await running(store)
  for (const table of ['journals', 'entries']) {
    assert.equal(await add(store, hold), 'ok')
    rows(path, `delete from millpond_${table}`)
    assert.deepEqual(await read(store, hold), [])
    assert.equal(await add(store, hold, '=b'), 'ok')
    assert.deepEqual(await read(store, hold), ['=b'])
    rows(path, 'delete from millpond_journals')
  }
})

test('a job without entries has no row of a journal', async () => {
  const path = newPath()
  const store = await openAt(path)
  const hold = await running(store)
  await store.operations.release({ queue: 'emails', items: [{ ...hold, park: { ...PARK, until: 0 } }] })
  assert.equal(await add(store, { ...hold, fence: hold.fence + 7 }), 'stale')
  assert.deepEqual(rows(path, 'select job from millpond_journals'), [])
  assert.deepEqual(rows(path, 'select journal from millpond_jobs'), [[null]])
})

test('a signal of another process rings, and so does a park', async () => {
  const path = newPath()
  const [store, other] = [await openAt(path), await openAt(path)]
  const hold = await running(store)
  let heard = 0
  const stop = other.listen(({ kind }) => {
    if (kind === 'work') heard++
  })
  const rings = async (what: string, doing: () => Promise<unknown>): Promise<void> => {
    const before = heard
    await doing()
    await until(() => heard > before, what)
  }
  await store.operations.release({ queue: 'emails', items: [{ ...hold, park: PARK }] })
  const items = [{ id: hold.id, ...ENTRY, name: '!go/1' }]
  await rings('a signal', () => store.operations.signal({ items }))
  const { jobs } = await other.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })
  const parks = jobs.map((each) => ({ ...each, park: PARK }))
  await rings('a park with a signal that it does not know', () =>
    store.operations.release({ queue: 'emails', items: parks }),
  )
  stop()
})

test('the entries of an answer are read without their bodies first: a page of a long journal is a range of it', async () => {
  const path = newPath()
  await openAt(path)
  const plan = rows(
    path,
    `explain query plan select max(n) from (
      select n, bytes, sum(bytes) over (order by n) as total from millpond_entries where job = 1 and n > 0
    ) where total <= 10`,
  )
  assert.match(JSON.stringify(plan), /SEARCH millpond_entries USING PRIMARY KEY \(job=\? AND n>\?\)/)
})
