/** The library on a store that can only push, claim, extend, end, sweep and count. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { openPlainStore } from '../support/plain-store.ts'
import { until } from '../support/until.ts'
import { diary, refused } from './suite.ts'

async function onPlainStore(check: (pond: Millpond) => Promise<void>): Promise<void> {
  const pond = new Millpond(openPlainStore(), 1_000)
  try {
    await check(pond)
  } finally {
    await pond.close({ timeout: 100 })
  }
}

test('jobs are pushed, run, tried again, and counted', () =>
  onPlainStore(async (pond) => {
    const told = diary(pond)
    const queue = pond.queue<number>('q')
    await queue.pushMany([1, 2, 3])
    queue.work((job) => {
      if (job.data === 1 && job.attempt === 1) throw new Error('the first attempt fails')
      if (job.data === 2) throw new Error('this one never works')
      return job.data
    })
    await until(async () => (await queue.stats()).counts.done === 2, 'two jobs to be done')
    await until(() => told.some(({ name }) => name === 'failed'), 'a failed attempt')
    const { counts, totals } = await queue.stats()
    assert.equal(counts.done, 2)
    assert.equal(totals.pushed, 3)
    assert.ok(totals.failed >= 2)
    assert.equal(
      told.find(({ name }) => name === 'error'),
      undefined,
    )
  }))

test('what the store lacks is refused with NotSupported', () =>
  onPlainStore(async (pond) => {
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1)
    await refused(queue.push(1, { key: 'k' }), 'NotSupported')
    await refused(queue.push(1, { delay: '1m' }), 'NotSupported')
    await refused(queue.push(1, { priority: 9 }), 'NotSupported')
    await refused(queue.pause(), 'NotSupported')
    await refused(pond.job(id), 'NotSupported')
    await refused(pond.explain(id), 'NotSupported')
  }))
