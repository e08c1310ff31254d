/** Filtered lists look at so many jobs in a call, and go on where they stopped. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import type { JobState } from '../../src/values/jobs/records.ts'
import type { JobFilter, Listed } from '../../src/values/operations/requests.ts'
import { newJobs } from '../support/jobs.ts'
import { claim, conformance } from './suite.ts'

/** What a call looks at, at most, unless its limit is higher. */
const MOST = 1_000

/** All that the filter lets through, page by page, with how many pages that took. */
async function all(
  store: Store,
  state: JobState,
  limit: number,
  filter: JobFilter,
): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = []
  let after: string | null = null
  for (let pages = 1; ; pages++) {
    const { jobs, next }: Listed = await store.operations.list({
      ...{ queue: 'q', state, limit, filter },
      ...(after === null ? {} : { after }),
    })
    assert.ok(jobs.length <= limit, 'a page keeps to its limit')
    ids.push(...jobs.map(({ id }) => id))
    if (next === null) return { ids, pages }
    assert.notEqual(next, after, 'paging goes on')
    after = next
  }
}

/** So many jobs, of which every hundredth is of the group `rare`. @returns the ids of those */
async function push(store: Store, count: number): Promise<string[]> {
  const jobs = newJobs(count).map((job, at) => ({ ...job, group: at % 100 === 99 ? 'rare' : 'common' }))
  for (let at = 0; at < count; at += 500) await store.operations.push({ jobs: jobs.slice(at, at + 500) })
  return jobs.filter(({ group }) => group === 'rare').map(({ id }) => id)
}

conformance('filters', {
  'find every job, however long the list': async (store) => {
    const rare = await push(store, 2_500)
    const { ids, pages } = await all(store, 'waiting', 10, { group: 'rare' })
    assert.deepEqual(ids, rare)
    assert.ok(pages >= 3, 'a page may be short, and is not the last')
    await claim(store, { limit: 2_500 })
    assert.deepEqual((await all(store, 'running', 1_000, { group: 'rare' })).ids.sort(), rare.toSorted())
  },

  'look at so many jobs in a call, and say where to go on': async (store) => {
    await push(store, MOST + 100)
    const filter = { group: 'none' }
    const { jobs, next } = await store.operations.list({ queue: 'q', state: 'waiting', limit: 5, filter })
    assert.deepEqual(jobs, [])
    assert.notEqual(next, null, 'the end of the list was not reached')
    assert.deepEqual(await all(store, 'waiting', 5, filter).then(({ ids }) => ids), [])
  },

  'go on in a grouped queue': async (store) => {
    await store.operations.configure({ queue: 'q', grouped: true })
    const rare = await push(store, 1_200)
    assert.deepEqual((await all(store, 'waiting', 3, { group: 'rare' })).ids, rare)
    assert.equal((await all(store, 'waiting', 1_000, { group: 'common' })).ids.length, 1_200 - rare.length)
  },
})
