/** What a server's settings do while a store is open: memory that runs out, keys that are dropped, users who may do little. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Bell } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { keysOf, openRedis } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''

describe('redis store: the server', { skip: missingReason('redis') }, () => {
  test('an eviction policy that is set later is warned of by a sweep', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const store = await open(redis.url, {})
    t.after(() => store.close())
    const warnings: { code?: string; message: string }[] = []
    const heard = (warning: Error) => warnings.push(warning)
    process.on('warning', heard)
    t.after(() => process.off('warning', heard))
    await redis.command('config', 'set', 'maxmemory', '100mb')
    await redis.command('config', 'set', 'maxmemory-policy', 'allkeys-lru')
    await store.operations.sweep({ limit: 100 })
    await until(
      () => warnings.some(({ code, message }) => code === 'RedisEviction' && /allkeys-lru/.test(message)),
      'it warns',
    )
  })

  test('the user of docs/redis.md may use a database of its own', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const page = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
    const rule = /^ACL (SETUSER queue .*)$/m.exec(page)?.[1] ?? ''
    await redis.command('acl', ...rule.split(' '))
    const store = await open(`${redis.url.replace('//', '//queue:secret@')}/3`, {})
    t.after(() => store.close())
    await store.operations.push({ jobs: [newJob()] })
    assert.equal((await claim(store)).jobs.length, 1)
    assert.match(await redis.command('-n', '0', 'dbsize'), /\b0\b/)
  })

  test('groups that are pushed and cancelled leave nothing behind where no worker claims', async (t) => {
    const { store, prefix, dispose } = await openRedis(url)
    t.after(dispose)
    const client = new Redis(url)
    t.after(() => client.disconnect())
    await store.operations.configure({ queue: 'q', grouped: true, keepDead: 0 })
    const before = await keysOf(client, prefix)
    for (const more of [{}, { delay: 10_000 }]) {
      const jobs = [...newJobs(2, { group: 'twice', ...more }), newJob({ group: 'once', ...more }), newJob(more)]
      await store.operations.push({ jobs })
      for (const { id } of jobs) assert.deepEqual(await store.operations.cancel({ ids: [id] }), ['cancelled'])
    }
    assert.deepEqual((await keysOf(client, prefix)).toSorted(), before.toSorted())
    // A group that claims have come to is still looked at by the next one.
    const jobs = newJobs(2, { group: 'g' })
    await store.operations.push({ jobs })
    assert.equal((await claim(store, { limit: 1 })).jobs.length, 1)
    await store.operations.cancel({ ids: [jobs[1]?.id ?? ''] })
    await store.operations.push({ jobs: [newJob({ group: 'g' })] })
    assert.equal((await claim(store)).jobs.length, 1)
  })

  test('a cancel of the job that a rate holds back wakes those who wait for what is behind it', async (t) => {
    const { store, prefix, dispose } = await openRedis(url)
    const other = await open(url, { prefix })
    t.after(async () => {
      await other.close()
      await dispose()
    })
    const heard: Bell[] = []
    let listening = false
    store.listen((bell) => {
      if (bell.kind === 'cancelled') listening = true
      if (listening) heard.push(bell)
    })
    await claim(store)
    await until(() => listening, 'it listens')
    await store.operations.configure({ queue: 'q', rate: { count: 10, per: 60_000, burst: 10 } })
    await store.operations.push({ jobs: newJobs(6) })
    assert.equal((await claim(store, { limit: 6 })).jobs.length, 6)
    const dear = newJob({ cost: 10 })
    await store.operations.push({ jobs: [dear, newJob()] })
    const { jobs, retryAfter } = await claim(store)
    assert.ok(jobs.length === 0 && (retryAfter ?? 0) > 1000)
    await until(() => heard.some(({ kind }) => kind === 'work'), 'it hears of that')
    heard.length = 0
    await other.operations.cancel({ ids: [dear.id] })
    await until(() => heard.some(({ kind }) => kind === 'work'), 'it is woken')
    assert.equal((await claim(store)).jobs.length, 1)
  })
})
