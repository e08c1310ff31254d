/** Limits over several connections, what blocked groups cost, and jobs that waited before their queue was grouped. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const take = (store: Store, limit: number) =>
  store.operations.claim({ queue: 'emails', worker: 'w', limit, lease: 30_000 })

const jobsOf = (groups: number, each: number): NewJob[] =>
  Array.from({ length: groups * each }, (_, at) => job({ group: `g${at % groups}` }))

test('sqlite limits: a backlog of thousands comes into lines bit by bit, and all of it is claimed within the limits', async () => {
  const store = await openAt(newPath())
  await store.operations.push({ jobs: jobsOf(10, 250) })
  await store.operations.configure({ queue: 'emails', groupRunning: 5 })
  let done = 0
  while (done < 2500) {
    const { jobs, retryAfter } = await take(store, 100)
    if (jobs.length === 0) assert.equal(retryAfter, 0, 'more are to be moved')
    for (const group of new Set(jobs.map((one) => one.group))) {
      assert.ok(jobs.filter((one) => one.group === group).length <= 5)
    }
    await store.operations.complete({
      queue: 'emails',
      items: jobs.map(({ id, fence }) => ({ id, fence, result: null })),
    })
    done += jobs.length
  }
  assert.equal((await take(store, 1)).jobs.length, 0)
})

test('sqlite limits: a claim leaves blocked groups alone', async () => {
  const path = newPath()
  const store = await openAt(path)
  await store.operations.configure({ queue: 'emails', groupRunning: 1 })
  await store.operations.push({ jobs: jobsOf(10_000, 2) })
  for (let taken = 0; taken < 10_000; ) taken += (await take(store, 1000)).jobs.length
  await store.operations.push({ jobs: [job({ group: 'free' })] })
  const db = connectTo(path)
  const eligible = () =>
    db.prepare('select count(*) as n from millpond_groups where touched = 1 or ticket >= 0').get()?.n
  assert.equal(eligible(), 1, 'of 10,001 groups, a claim has one to look at')
  const { jobs } = await take(store, 10)
  assert.deepEqual(
    jobs.map(({ group }) => group),
    ['free'],
  )
  assert.equal(eligible(), 0)
  db.close()
})

test('sqlite limits: sweeps forget idle groups, a thousand at a time', async () => {
  const clock = { now: 1_800_000_000_000 }
  const path = newPath()
  const store = await openAt(path, { clock: () => clock.now })
  const db = connectTo(path)
  const names = () =>
    db
      .prepare('select name from millpond_groups order by name')
      .all()
      .map(({ name }) => name)
  const run = async (jobs: NewJob[]) => {
    await store.operations.push({ jobs })
    for (let left = jobs.length; left > 0; ) {
      const claimed = await take(store, 1000)
      left -= claimed.jobs.length
      await store.operations.complete({
        queue: 'emails',
        items: claimed.jobs.map(({ id, fence }) => ({ id, fence, result: null })),
      })
    }
    assert.equal((await take(store, 1)).jobs.length, 0, 'a claim after the last ending has looked at its group')
  }
  await store.operations.limitGroup?.({ queue: 'emails', group: 'own', limits: { running: 1, rate: null, weight: 1 } })
  await run([job({ group: 'urgent', priority: 7 }), job({ group: 'urgent' }), ...jobsOf(2500, 1)])
  clock.now += 9999
  const kept = names()
  await store.operations.sweep({ limit: 1000 })
  assert.deepEqual(names(), kept, 'each group has started a job less than ten seconds ago')
  clock.now += 1
  let before = kept.length
  for (let more = true; more; ) {
    more = (await store.operations.sweep({ limit: 1000 })).more
    const now = names().length
    assert.ok(now < before && now >= before - 1000, `${before} groups became ${now}`)
    before = now
  }
  assert.deepEqual(names(), ['own'])
  assert.deepEqual(db.prepare('select * from millpond_turns').all(), [])
  await store.operations.configure({ queue: 'emails', groupRate: { count: 1, per: 60_000, burst: null } })
  await run([job({ group: 'rated' })])
  clock.now += 59_999
  await store.operations.sweep({ limit: 1000 })
  assert.deepEqual(names(), ['own', 'rated'], 'its rate has not given back its start yet')
  clock.now += 1
  await store.operations.sweep({ limit: 1000 })
  assert.deepEqual(names(), ['own'])
  db.close()
})

test('sqlite limits: no trigger reads a whole table', async () => {
  const path = newPath()
  await (await openAt(path)).operations.configure({ queue: 'emails', groupRunning: 1 })
  const db = connectTo(path)
  const triggers = db.prepare(`select name, sql from sqlite_master where type = 'trigger'`).all()
  for (const { name, sql } of triggers) {
    // Runs where another program removes a queue with jobs.
    if (name === 'millpond_queue_removed') continue
    const body = String(sql).match(/\bbegin\b(.*)\bend$/s)?.[1] ?? ''
    for (const statement of body.split(/;\s*$/m).filter((text) => text.trim() !== '')) {
      const plan = db.prepare(`explain query plan ${statement.replaceAll(/\b(?:new|old)\.\w+/g, '?')}`).all()
      for (const { detail } of plan) {
        assert.doesNotMatch(String(detail), /^SCAN (?!CONSTANT ROW)/, `${name}: ${detail}`)
      }
    }
  }
  db.close()
  assert.ok(triggers.length >= 5, `${triggers.length} triggers`)
})

test('sqlite limits: the rate of a queue holds over two clients', async () => {
  const clock = { now: 1_800_000_000_000 }
  const path = newPath()
  const [one, other] = [await openAt(path, { clock: () => clock.now }), await openAt(path, { clock: () => clock.now })]
  await one.operations.configure({ queue: 'emails', rate: { count: 100, per: 1000, burst: 4 } })
  await one.operations.push({ jobs: jobsOf(7, 50) })
  let started = 0
  for (const end = clock.now + 1000; clock.now <= end; clock.now++) {
    const claims = await Promise.all([take(one, 3), take(other, 3)])
    started += claims.flatMap(({ jobs }) => jobs).length
  }
  assert.equal(started, 4 + 100)
})
