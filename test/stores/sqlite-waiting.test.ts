/** The stretches of waiting jobs: after any sequence of operations each waiting job lies in one, and they never overlap. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Store } from '../../src/store.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { Driver } from '../model/driver.ts'
import { operation } from '../model/operations.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

function check(path: string): void {
  const db = connectTo(path)
  const outside = db.prepare(`select seq, (
      select count(*) from millpond_waiting as stretch
      where stretch.queue = job.queue and stretch.priority = job.priority and job.seq between first and last
    ) as stretches
    from millpond_jobs as job where state = 'waiting' and stretches <> 1`)
  const overlapping = db.prepare(`select a.first, a.last, b.first from millpond_waiting as a
    join millpond_waiting as b on a.queue = b.queue and a.priority = b.priority and a.first < b.first and b.first <= a.last`)
  assert.deepEqual(outside.all(), [])
  assert.deepEqual(overlapping.all(), [])
  assert.deepEqual(db.prepare('select * from millpond_waiting where last < first').all(), [])
  db.close()
}

function stretches(path: string): unknown[] {
  const db = connectTo(path)
  const rows = db.prepare('select priority, first, last from millpond_waiting order by priority desc, first').all()
  db.close()
  return rows.map(({ priority, first, last }) => [priority, first, last])
}

const claim = (store: Store, limit: number) => store.claim({ queue: 'emails', worker: 'w', limit, lease: 10_000 })

async function pushed(count: number): Promise<{ path: string; store: Store; ids: string[] }> {
  const path = newPath()
  const store = await openAt(path)
  const jobs = Array.from({ length: count }, () => job())
  await store.push(jobs)
  return { path, store, ids: jobs.map(({ id }) => id) }
}

describe('sqlite: stretches of waiting jobs', () => {
  test('each waiting job lies in one, and none overlap, after random sequences', async () => {
    const sequence = fc.array(operation, { maxLength: 60, size: 'max' })
    const property = fc.asyncProperty(sequence, async (operations) => {
      const clock = { now: EPOCH }
      const path = newPath()
      const store = await openAt(path, { clock: () => clock.now })
      await new Driver(store, clock).run(operations)
      check(path)
      await store.close()
    })
    const seed = process.env.MILLPOND_SEED
    await fc.assert(property, { numRuns: 60, ...(seed === undefined ? {} : { seed: Number(seed) }) })
  })

  test('pushes one after the other share one, a claim shortens it, and the last claim leaves none', async () => {
    const { path, store } = await pushed(5)
    await store.push([job()])
    assert.deepEqual(stretches(path), [[4, 1, 6]])
    await claim(store, 2)
    assert.deepEqual(stretches(path), [[4, 3, 6]])
    await store.push([job({ priority: 9 }), job(), job({ delay: 60_000 }), job()])
    assert.deepEqual(stretches(path), [
      [9, 7, 7],
      [4, 3, 10],
    ])
    assert.equal((await claim(store, 10)).jobs.length, 7)
    assert.deepEqual(stretches(path), [])
  })

  test('jobs given back get one of their own in front, and are claimed first', async () => {
    const { path, store, ids } = await pushed(6)
    const { jobs } = await claim(store, 4)
    await store.release('emails', jobs.slice(1, 3))
    assert.deepEqual(stretches(path), [
      [4, 2, 3],
      [4, 5, 6],
    ])
    const again = await claim(store, 3)
    assert.deepEqual(
      again.jobs.map(({ id }) => id),
      [ids[1], ids[2], ids[4]],
    )
    assert.deepEqual(stretches(path), [[4, 6, 6]])
  })

  test('jobs cancelled in their order are stepped over by nobody', async () => {
    const path = newPath()
    const store = await openAt(path)
    const jobs = Array.from({ length: 5 }, () => job())
    await store.push(jobs)
    await store.cancel(jobs.slice(0, 3).map(({ id }) => id))
    assert.deepEqual(stretches(path), [[4, 4, 5]])
    await store.cancel(jobs.slice(3).map(({ id }) => id))
    assert.deepEqual(stretches(path), [])
  })

  test('places that removed jobs had may go to jobs of other queues', async () => {
    const path = newPath()
    const store = await openAt(path)
    await store.configure({ queue: 'emails', keepDead: 0 })
    const jobs = Array.from({ length: 4 }, () => job())
    await store.push(jobs)
    // The first stays, so that its stretch does.
    await store.cancel(jobs.slice(1).map(({ id }) => id))
    const [other, ours] = [job({ queue: 'others' }), job()]
    await store.push([other])
    await store.push([ours])
    check(path)
    const { jobs: claimed } = await claim(store, 10)
    assert.deepEqual(
      claimed.map(({ id }) => id),
      [jobs[0]?.id, ours.id],
    )
    const others = await store.claim({ queue: 'others', worker: 'w', limit: 10, lease: 10_000 })
    assert.deepEqual(
      others.jobs.map(({ id }) => id),
      [other.id],
    )
  })

  test('a job cancelled in the midst of a stretch and brought back is in its old place', async () => {
    const path = newPath()
    const store = await openAt(path)
    const jobs = Array.from({ length: 3 }, () => job())
    await store.push(jobs)
    const middle = [jobs[1]?.id ?? '']
    await store.cancel(middle)
    await store.admin.requeue({ ids: middle })
    check(path)
    const { jobs: claimed } = await claim(store, 10)
    assert.deepEqual(
      claimed.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
  })

  test('a stretch of jobs that are gone is in nobody’s way', async () => {
    const path = newPath()
    const store = await openAt(path)
    await store.configure({ queue: 'emails', keepDead: 0 })
    const gone = Array.from({ length: 3 }, () => job())
    await store.push([job(), ...Array.from({ length: 40 }, () => job({ priority: 9 })), ...gone])
    await store.cancel(gone.map(({ id }) => id).reverse())
    assert.deepEqual(stretches(path), [
      [9, 2, 41],
      [4, 1, 1],
      [4, 43, 44],
    ])
    // It gets the place of the first that has gone, before what is left of their stretch.
    await store.push([job()])
    check(path)
    assert.equal((await claim(store, 50)).jobs.length, 42)
  })

  test('where pushes to several queues take turns, each has one still, up to 32', async () => {
    const path = newPath()
    const store = await openAt(path)
    const turns = (queues: number) => Array.from({ length: queues * 3 }, (_, at) => job({ queue: `q${at % queues}` }))
    for (const one of turns(8)) await store.push([one])
    assert.equal(stretches(path).length, 8)
    await store.push(turns(8))
    assert.equal(stretches(path).length, 8)
    check(path)
    const { jobs } = await store.claim({ queue: 'q3', worker: 'w', limit: 10, lease: 10_000 })
    assert.equal(jobs.length, 6)
    assert.equal(stretches(path).length, 7)
    await store.push(turns(40))
    assert.ok(stretches(path).length > 40)
    check(path)
    assert.equal((await store.claim({ queue: 'q39', worker: 'w', limit: 10, lease: 10_000 })).jobs.length, 3)
  })

  test('a claim clears away what it went through, of higher priorities too', async () => {
    const path = newPath()
    const store = await openAt(path)
    const higher = Array.from({ length: 3 }, () => job({ priority: 9 }))
    await store.push([...higher, job(), job()])
    await store.cancel(higher.map(({ id }) => id).reverse())
    await claim(store, 1)
    assert.deepEqual(stretches(path), [[4, 5, 5]])
  })
})
