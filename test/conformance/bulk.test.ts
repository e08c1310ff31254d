/** Changes in bulk: long lists, large data, runs beside each other, and beside workers. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import type { JobState } from '../../src/values/jobs/records.ts'
import type { BulkChange, BulkRequest, BulkStep } from '../../src/values/operations/requests.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { claim, conformance } from './suite.ts'

const REQUEUE: BulkChange = { kind: 'requeue' }
const CANCEL: BulkChange = { kind: 'cancel' }

/** All steps, and how many there were. */
async function run(store: Store, given: Partial<BulkRequest> = {}): Promise<BulkStep & { steps: number }> {
  const all = { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: 0, steps: 0 }
  let { after } = given
  for (;;) {
    const step: BulkStep = await store.operations.bulk({
      ...{ queue: 'q', state: 'waiting', change: CANCEL, limit: 1000, ...given },
      ...(after !== undefined && { after }),
    })
    all.steps++
    all.looked += step.looked
    all.matched += step.matched
    all.changed += step.changed
    if (step.next === null) return all
    assert.notEqual(step.next, after, 'a run goes on')
    after = step.next
  }
}

/** So many waiting jobs, every hundredth of the group `rare`. */
async function push(store: Store, count: number): Promise<string[]> {
  const jobs = newJobs(count).map((job, at) => ({ ...job, group: at % 100 === 99 ? 'rare' : 'common' }))
  for (let at = 0; at < count; at += 500) await store.operations.push({ jobs: jobs.slice(at, at + 500) })
  return jobs.filter(({ group }) => group === 'rare').map(({ id }) => id)
}

const statesOf = async (store: Store, ids: readonly string[]): Promise<JobState[]> =>
  (await store.operations.find({ ids })).map((job) => job?.state ?? 'done')

const count = async (store: Store, state: JobState): Promise<number> =>
  (await store.operations.stats({ queue: 'q' }))[0]?.counts[state] ?? 0

conformance('bulk', {
  'finds every job, however long the list, in bounded steps': async (store) => {
    const rare = await push(store, 6_000)
    const filter = { group: 'rare' }
    const counted = await run(store, { filter, limit: 0 })
    assert.deepEqual([counted.matched, counted.changed], [60, 0])
    const { looked, changed, steps } = await run(store, { filter, limit: 7 })
    assert.deepEqual([looked, changed], [6_000, 60])
    assert.ok(steps >= 9, 'a step keeps to its limit')
    assert.deepEqual(new Set(await statesOf(store, rare)), new Set(['cancelled']))
    assert.equal(await count(store, 'waiting'), 5_940)
    assert.equal((await run(store)).changed, 5_940)
    assert.equal((await run(store, { state: 'cancelled', change: REQUEUE, filter })).changed, 60)
    assert.equal(await count(store, 'cancelled'), 5_940)
  },

  'in a grouped queue': async (store) => {
    await store.operations.configure({ queue: 'q', grouped: true, groupRunning: 1 })
    const rare = await push(store, 1_200)
    assert.equal((await run(store, { filter: { group: 'common' }, limit: 100 })).changed, 1_188)
    const { jobs } = await claim(store)
    assert.deepEqual(
      jobs.map(({ id }) => id),
      rare.slice(0, 1),
    )
    assert.equal((await run(store, { state: 'running' })).changed, 1)
    assert.equal((await claim(store)).jobs.length, 1)
    assert.equal((await run(store, { state: 'cancelled', change: REQUEUE, filter: { group: 'rare' } })).changed, 1)
    assert.equal(await count(store, 'waiting'), 11)
  },

  'two runs at once: no job is changed by both': async (store) => {
    await push(store, 1_500)
    assert.equal((await run(store)).changed, 1_500)
    const requeue = () => run(store, { state: 'cancelled', change: REQUEUE, limit: 100 })
    // What the other run holds at a moment is left to it; a third run finds what both have left.
    const all = [...(await Promise.all([requeue(), requeue()])), await requeue()]
    assert.equal(
      all.reduce((sum, { changed }) => sum + changed, 0),
      1_500,
    )
    assert.deepEqual([await count(store, 'waiting'), await count(store, 'cancelled')], [1_500, 0])
    assert.equal((await claim(store, { limit: 2_000 })).jobs.length, 1_500)
  },

  'beside claims: each job is claimed or cancelled, none both': async (store) => {
    await push(store, 2_000)
    let claimed = 0
    const claims = async () => {
      for (let got = 1; got > 0; ) {
        got = (await claim(store, { limit: 50 })).jobs.length
        claimed += got
      }
    }
    const [first] = await Promise.all([run(store, { limit: 50 }), claims()])
    const { changed } = await run(store)
    assert.equal(first.changed + changed + claimed, 2_000)
    assert.equal(await count(store, 'running'), claimed)
    assert.equal(await count(store, 'cancelled'), first.changed + changed)
  },

  'large data: a step is bounded in bytes, too': async (store) => {
    if (!store.capabilities.text) return
    const body = JSON.stringify('x'.repeat(900_000))
    for (let at = 0; at < 24; at += 4) {
      await store.operations.push({ jobs: newJobs(4, { data: { encoding: 'json', body } }) })
    }
    await store.operations.push({ jobs: [newJob({ data: { encoding: 'json', body: '"needle"' } })] })
    assert.equal((await run(store, { filter: { text: 'needle' } })).changed, 1)
    assert.equal((await run(store, { filter: { text: 'xxx' }, limit: 5 })).changed, 24)
  },

  'an error whose text JSON writes in another way': async (store) => {
    await store.operations.push({ jobs: newJobs(3, { attempts: 1 }) })
    const { jobs } = await claim(store)
    const messages = ['a "quoted" \\ word', 'a new\nline', 'Größe 5\u0000']
    const items = jobs.map(({ id, fence }, at) => {
      const error = { code: 'HandlerFailed', name: 'Error', message: messages[at] ?? '' }
      return { id, fence, delay: null, error }
    })
    await store.operations.fail({ queue: 'q', items })
    const dead = { state: 'dead', change: REQUEUE, limit: 0 } as const
    for (const errorText of ['"quoted"', '\\ w', 'new\nline']) {
      assert.equal((await run(store, { ...dead, filter: { errorText } })).matched, 1, errorText)
    }
    assert.equal((await run(store, { ...dead, filter: { errorText: 'quoted\\' } })).matched, 0)
    assert.equal((await run(store, { ...dead, filter: { errorCode: 'HandlerFailed' } })).matched >= 2, true)
  },
})
