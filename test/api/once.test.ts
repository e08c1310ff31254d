/** Keys that are remembered, replace jobs and make them follow, as users have them: docs/once.md. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { onEachStore, refused } from './suite.ts'

onEachStore('once', {
  'a remembered key answers with the job that ended, and its result': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number, number>('q')
    queue.work(({ data }) => data * 2)
    const { id } = await queue.push(21, { key: 'k', once: { for: '1h' } })
    assert.equal(await pond.result(id, { timeout: '20s' }), 42)
    assert.deepEqual(await queue.push(1, { key: 'k' }), { id, existing: true })
    assert.equal(await pond.result(id), 42)
    assert.deepEqual((await pond.job(id))?.once, { for: 3_600_000, since: 'end' })
    await pond.cancel(id)
    assert.equal((await queue.push(2, { key: 'other', once: { for: '1h', since: 'push' } })).existing, false)
  },

  'a debounced job runs once, with the last data': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number, number>('q')
    const options = { key: 'k', delay: '100ms', once: { replace: true, maxWait: '1m' } }
    const { id } = await queue.push(1, options)
    for (const n of [2, 3]) assert.deepEqual(await queue.push(n, options), { id, existing: true, replaced: true })
    queue.work(({ data }) => data)
    assert.equal(await pond.result(id, { timeout: '20s' }), 3)
    const [stats] = await pond.stats()
    assert.equal(stats?.totals.pushed, 1)
  },

  'a job that pushes its own key again is followed, however often': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const seen: number[] = []
    queue.work(async ({ data, id }) => {
      seen.push(data)
      if (data === 5) return
      const next = await queue.push(-1, { key: 'k', once: { whenRunning: 'follow' } })
      assert.equal(next.existing, false)
      const again = await queue.push(data + 1, { key: 'k', once: { whenRunning: 'follow' } })
      assert.deepEqual(again, { id: next.id, existing: true, replaced: true })
      const explained = await pond.explain(next.id)
      assert.deepEqual(explained?.reasons, [{ kind: 'follows', key: 'k' }])
      assert.match(explained?.text ?? '', /another job with the key "k" has not ended/)
      assert.equal((await pond.job(next.id))?.follows, true)
      assert.notEqual(next.id, id)
    })
    await queue.push(1, { key: 'k' })
    await until(() => seen.length === 5)
    assert.deepEqual(seen, [1, 2, 3, 4, 5])
  },

  'sealed data are replaced': async ({ open }) => {
    const pond = await open({ seal: { keys: [{ id: 'a', key: randomBytes(32) }] } })
    const queue = pond.queue<string, string>('q')
    const options = { key: 'k', once: { replace: true, whenRunning: 'follow' } as const, delay: '1h' }
    const { id } = await queue.push('first', options)
    await queue.push('second', options)
    assert.equal((await pond.job(id))?.data, 'second')
    await queue.push('third', { ...options, delay: 0 })
    queue.work(({ data }) => data)
    assert.equal(await pond.result(id, { timeout: '20s' }), 'third')
  },

  'what would do nothing is refused': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    await refused(queue.push(1, { once: { for: '1m' } }), 'InvalidOption')
    await refused(queue.push(1, { once: { whenRunning: 'follow' } }), 'InvalidOption')
    await refused(queue.push(1, { key: 'k', once: { maxWait: '1m' } }), 'InvalidOption')
    await refused(queue.push(1, { key: 'k', once: { for: 0 } }), 'InvalidOption')
    await refused(queue.push(1, { key: 'k', once: { for: '1m', since: 'start' as 'end' } }), 'InvalidOption')
    await refused(queue.push(1, { key: 'k', once: { whenRunning: 'wait' as 'follow' } }), 'InvalidOption')
    await refused(queue.push(1, { key: 'k', once: { since: 'push' } }), 'InvalidOption', /since needs for/)
    const misspelt = { key: 'k', once: { replaced: true } as object }
    await refused(queue.push(1, misspelt), 'InvalidOption', /once of push to q: unknown option "replaced"/)
    await refused(queue.pushMany([1], { once: { replace: true } }), 'InvalidOption')
    const pushed = await queue.pushMany([1, 1], { once: { replace: true }, each: () => ({ key: 'k' }) })
    assert.deepEqual(
      pushed.map(({ replaced = false }) => replaced),
      [false, true],
    )
  },
})

test('a pond that spills refuses the options', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-once-'))
  const pond = await Millpond.open('memory:', { spill: `sqlite:${join(folder, 'spill.db')}` })
  t.after(async () => {
    await pond.close()
    await rm(folder, { recursive: true })
  })
  await refused(pond.queue('q').push(1, { key: 'k', once: { for: '1m' } }), 'NotSupported')
  assert.equal((await pond.queue('q').push(1, { key: 'k' })).existing, false)
})
