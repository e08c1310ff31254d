/** Large pushes of ids that are known, in any state, whether the ids lie close together or far apart. */

import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import { ERROR, newJob } from '../support/jobs.ts'
import { claim, conformance } from './suite.ts'

/** UUIDv7s so many milliseconds apart. */
const idsApart = (ms: number): string[] =>
  Array.from({ length: 40 }, (_, i) => {
    const time = (0x019b76da0000 + i * ms).toString(16).padStart(12, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-9000-${i.toString(16).padStart(12, '0')}`
  })

async function check(store: Store, ids: readonly string[]): Promise<void> {
  const jobs = ids.map((id) => newJob({ id }))
  // Every fourth of them: waiting, running, done, dead or cancelled in turn.
  const known = jobs.filter((_, i) => i % 4 === 1)
  const ids5 = (n: number) => known.filter((_, i) => i % 5 === n).map(({ id }) => id)
  await store.operations.push({ jobs: known.filter((_, i) => i % 5 > 0) })
  const claims = (await claim(store)).jobs
  const claimsOf = (n: number) => claims.filter(({ id }) => ids5(n).includes(id))
  await store.operations.complete({ queue: 'q', items: claimsOf(2).map((hold) => ({ ...hold, result: null })) })
  await store.operations.fail({
    queue: 'q',
    items: claimsOf(3).map((hold) => ({ ...hold, error: ERROR, delay: null })),
  })
  await store.operations.cancel({ ids: ids5(4) })
  await store.operations.push({ jobs: known.filter((_, i) => i % 5 === 0) })
  const states = new Set(
    (await store.operations.find({ ids: known.map(({ id }) => id) })).map((record) => record?.state),
  )
  assert.deepEqual(states, new Set(['waiting', 'running', 'done', 'dead', 'cancelled']))

  const expected = (all: 'pushed' | 'existing') =>
    jobs.map((job) => ({ status: known.includes(job) ? 'existing' : all, id: job.id }))
  assert.deepEqual(await store.operations.push({ jobs }), expected('pushed'))
  assert.deepEqual(await store.operations.push({ jobs: jobs.toReversed() }), expected('existing').toReversed())
  const waiting = jobs.length - known.length + ids5(0).length
  assert.equal((await claim(store)).jobs.length, waiting)
  assert.equal((await claim(store)).jobs.length, 0)
}

conformance('known ids', {
  'that were made at the same time': (store) => check(store, idsApart(0)),
  'that were made days apart': (store) => check(store, idsApart(10 ** 8)),
})
