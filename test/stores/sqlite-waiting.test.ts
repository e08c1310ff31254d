/** Waiting jobs are rows that people may change with plain SQL: what says `waiting` is claimed. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

describe('sqlite: waiting jobs', () => {
  test('a job that was updated to waiting by hand is claimed, in its old place', async () => {
    const path = newPath()
    const store = await openAt(path)
    const jobs = Array.from({ length: 3 }, () => job())
    await store.operations.push({ jobs })
    const second = jobs[1]?.id ?? ''
    await store.operations.cancel({ ids: [second] })
    const other = connectTo(path)
    other.prepare(`update millpond_jobs set state = 'waiting', finished_at = null where id = ?`).run(second)
    other.close()
    const { jobs: claimed } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 10, lease: 10_000 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
  })

  test('stats of a queue whose last waiting job is claimed while they are read', async () => {
    const path = newPath()
    const store = await openAt(path)
    await store.operations.push({ jobs: [job()] })
    // As another process leaves it between the reading of the counts and that of the jobs.
    const other = connectTo(path)
    other.exec('delete from millpond_jobs')
    other.close()
    const [stats] = await store.operations.stats({ queue: 'emails' })
    assert.deepEqual([stats?.counts.waiting, stats?.oldestWaiting], [1, null])
  })
})
