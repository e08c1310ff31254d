/** Lists with filters, updates, removals and restored jobs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'
import type { BulkRequest, BulkStep, ListRequest } from '../../src/values/operations/requests.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { openRedis } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''
const idsOf = (jobs: readonly { id: string }[]): string[] => jobs.map(({ id }) => id)

/** All pages of a list, and how many there were. */
async function pages(store: Store, request: ListRequest): Promise<{ ids: string[]; count: number }> {
  const ids: string[] = []
  let next: string | null = null
  let count = 0
  do {
    const after: { after?: string } = next === null ? {} : { after: next }
    const page = await store.operations.list({ ...request, ...after })
    ids.push(...idsOf(page.jobs))
    next = page.next
    count++
  } while (next !== null)
  return { ids, count }
}

describe('changes on Redis', { skip: missingReason('redis') }, () => {
  const onStore = (title: string, check: (store: Store) => Promise<void>) =>
    test(title, async () => {
      const { store, dispose } = await openRedis(url)
      try {
        await check(store)
      } finally {
        await dispose()
      }
    })

  onStore('a filter finds all that pass, in order, by calls that look at a bounded number', async (store) => {
    const jobs = Array.from({ length: 3_000 }, (_, i) =>
      newJob({ priority: i % 3, data: { encoding: 'json', body: `"job ${i % 500}"` } }),
    )
    for (let at = 0; at < jobs.length; at += 500) await store.operations.push({ jobs: jobs.slice(at, at + 500) })
    const request: ListRequest = { queue: 'q', state: 'waiting', limit: 4, filter: { text: 'job 77"' } }
    const wanted = idsOf(jobs.filter((_, i) => i % 500 === 77))
    const found = await pages(store, request)
    assert.deepEqual(found.ids.toSorted(), wanted.toSorted())
    assert.ok(found.count >= 3, `${found.count} calls looked at 3,000 jobs`)
    const all = (await pages(store, { queue: 'q', state: 'waiting', limit: 700 })).ids
    assert.deepEqual(
      found.ids,
      all.filter((id) => wanted.includes(id)),
    )
    assert.equal(all.length, 3_000)
  })

  onStore('an update moves a job among those of another priority to its place', async (store) => {
    const jobs = newJobs(40)
    for (const job of jobs) await store.operations.push({ jobs: [job] })
    const some = jobs.filter((_, i) => i % 4 !== 0)
    const outcomes = await store.operations.update({ items: some.map(({ id }) => ({ id, priority: 9 })) })
    assert.deepEqual(
      outcomes,
      some.map(() => 'updated'),
    )
    {
      const rest = jobs.filter((_, i) => i % 4 === 0)
      assert.deepEqual((await pages(store, { queue: 'q', state: 'waiting', limit: 7 })).ids, idsOf([...some, ...rest]))
    }
    const { jobs: claimed } = await claim(store, { limit: 40 })
    assert.equal(claimed.length, 40)
    assert.deepEqual(await store.operations.update({ items: [{ id: jobs[0]?.id ?? '', priority: 1 }] }), ['running'])
  })

  onStore('a change in bulk goes through all jobs, and through each once', async (store) => {
    const jobs = Array.from({ length: 3_000 }, (_, i) =>
      newJob({ priority: i % 3, group: i % 50 === 0 ? 'rare' : `g${i % 7}` }),
    )
    for (let at = 0; at < jobs.length; at += 500) await store.operations.push({ jobs: jobs.slice(at, at + 500) })
    const run = async (request: Omit<BulkRequest, 'queue'>) => {
      let changed = 0
      for (let after: string | null | undefined, until: number | undefined; after !== null; ) {
        const step: BulkStep = await store.operations.bulk({
          ...{ ...request, queue: 'q' },
          ...(after !== undefined && { after }),
          ...(until !== undefined && { until }),
        })
        changed += step.changed
        until ??= step.now
        after = step.next
      }
      return changed
    }
    const rare = { filter: { group: 'rare' } }
    assert.equal(await run({ state: 'waiting', change: { kind: 'update', priority: 0 }, limit: 7 }), 2_000)
    assert.equal(await run({ state: 'waiting', change: { kind: 'cancel' }, limit: 7, ...rare }), 60)
    assert.equal(await run({ state: 'cancelled', change: { kind: 'requeue' }, limit: 7, ...rare }), 60)
    assert.equal(await run({ state: 'waiting', change: { kind: 'remove' }, limit: 900 }), 3_000)
    assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.counts.waiting, 0)
  })

  onStore('what was removed is restored, with results and errors, and listed once', async (store) => {
    const jobs = newJobs(60)
    await store.operations.push({ jobs })
    const { jobs: held } = await claim(store, { limit: 20 })
    const result = { encoding: 'json' as const, body: '1' }
    const error = { code: 'HandlerFailed', name: 'E', message: 'm' }
    await store.operations.complete({ queue: 'q', items: held.slice(0, 10).map((job) => ({ ...job, result })) })
    await store.operations.fail({ queue: 'q', items: held.slice(10).map((job) => ({ ...job, error, delay: null })) })
    const ids = idsOf(jobs)
    const records = (await store.operations.find({ ids })).filter((record): record is JobRecord => record !== null)
    assert.deepEqual(await store.operations.remove({ ids: [...ids, ...ids] }), { removed: 60, more: false })
    assert.deepEqual(
      await store.operations.find({ ids }),
      ids.map(() => null),
    )
    const outcomes = await store.operations.restore({ records })
    assert.deepEqual(
      outcomes,
      records.map(() => 'restored'),
    )
    assert.deepEqual(await store.operations.find({ ids }), records)
    for (const [state, count] of [
      ['waiting', 40],
      ['done', 10],
      ['dead', 10],
    ] as const) {
      const { ids: listed } = await pages(store, { queue: 'q', state, limit: 3 })
      assert.equal(new Set(listed).size, count, state)
      assert.equal(listed.length, count, state)
    }
    const [stats] = await store.operations.stats({})
    assert.deepEqual([stats?.totals.pushed, stats?.totals.done, stats?.totals.dead], [60, 10, 10])
    const [again] = (await claim(store, { limit: 1 })).jobs
    assert.ok(again)
    await store.operations.remove({ ids: [again.id] })
    await store.operations.push({ jobs: [newJob({ id: again.id })] })
    await claim(store, { limit: 100 })
    assert.deepEqual(await store.operations.complete({ queue: 'q', items: [{ ...again, result: null }] }), ['stale'])
  })
})
