/** Removals that meet other calls: nothing is counted twice, and no push is lost. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import { newJob, newJobs, recordOf } from '../support/jobs.ts'
import { claim, conformance } from './suite.ts'

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id)

/** How many of the jobs the store knows; its counts must say the same. */
async function present(store: Store, ids: readonly string[]): Promise<number> {
  const found = (await store.operations.find({ ids })).filter((record) => record !== null).length
  const [stats] = await store.operations.stats({ queue: 'q' })
  const counted = Object.values(stats?.counts ?? {}).reduce((sum, count) => sum + count, 0)
  assert.equal(counted, found, 'the counts are right')
  return found
}

conformance('removal', {
  'of many that name the same jobs, each job is removed once': async (store) => {
    const jobs = newJobs(50)
    await store.operations.push({ jobs })
    await claim(store, { limit: 20 })
    const ids = idsOf(jobs)
    const answers = await Promise.all(
      times(8, (i) => store.operations.remove({ ids: i % 2 === 0 ? ids : ids.toReversed() })),
    )
    assert.equal(
      answers.reduce((sum, { removed }) => sum + removed, 0),
      jobs.length,
    )
    assert.equal(await present(store, ids), 0)
  },

  'a job that is removed while it is claimed and completed is gone, and counted once': async (store) => {
    const jobs = newJobs(30)
    await store.operations.push({ jobs })
    const claims = (await claim(store)).jobs
    const [completed, removed] = await Promise.all([
      Promise.all(claims.map((hold) => store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] }))),
      Promise.all(idsOf(jobs).map((id) => store.operations.remove({ ids: [id] }))),
    ])
    assert.equal(
      removed.reduce((sum, answer) => sum + answer.removed, 0),
      jobs.length,
    )
    assert.equal(await present(store, idsOf(jobs)), 0)
    const [stats] = await store.operations.stats({})
    assert.equal(stats?.totals.done, completed.flat().filter((outcome) => outcome === 'ok').length)
  },

  'a push or a restore that meets the removal of its queue is never lost': async (store) => {
    const ids: string[] = []
    let removed = 0
    for (let round = 0; round < 20; round++) {
      const jobs = newJobs(3)
      const record = recordOf()
      ids.push(...idsOf(jobs), record.id)
      const [outcomes, restored, ...gone] = await Promise.all([
        store.operations.push({ jobs }),
        store.operations.restore({ records: [record] }),
        ...times(3, () => store.operations.remove({ queue: 'q', limit: 100 })),
      ])
      assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['pushed']))
      assert.deepEqual(restored, ['restored'])
      for (const answer of gone) removed += answer.removed
      assert.equal(await present(store, ids), ids.length - removed, `round ${round}`)
    }
  },

  'settings that meet the removal of their queue are whole, or gone with it': async (store) => {
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        store.operations.configure({ queue: 'q', running: 3, attempts: 7 }),
        store.operations.remove({ queue: 'q', limit: 100 }),
      ])
      const report = await store.operations.settings({ queue: 'q' })
      if (report === null) assert.deepEqual(await store.operations.stats({}), [])
      else assert.deepEqual(report.code, { running: 3, attempts: 7 })
    }
  },

  'a queue that is large goes step by step': async (store) => {
    for (let at = 0; at < 4; at++)
      await store.operations.push({ jobs: newJobs(500, { key: null, delay: at === 0 ? 60_000 : 0 }) })
    await claim(store, { limit: 300 })
    let removed = 0
    for (let steps = 1; ; steps++) {
      const answer = await store.operations.remove({ queue: 'q', limit: 700 })
      assert.ok(answer.removed <= 700, 'a step keeps to its limit')
      removed += answer.removed
      if (!answer.more) break
      assert.ok(steps < 10, 'the removal comes to an end')
    }
    assert.equal(removed, 2_000)
    assert.deepEqual(await store.operations.stats({}), [])
    await store.operations.push({ jobs: [newJob()] })
    assert.equal((await claim(store)).jobs.length, 1)
  },
})
