/** Which addresses, options and servers the Redis store takes, and what it asks of them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Bell } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import {
  complete,
  everything,
  everythingOfLimits,
  everythingOfSchedules,
  everythingOfSteps,
} from './redis-everything.ts'
import { connect, openRedis } from './redis-fixture.ts'

const code =
  (name: Parameters<typeof isMillpondError>[1], message = /./) =>
  (error: unknown) => {
    assert.ok(isMillpondError(error, name), String(error))
    assert.match(error.message, message)
    return true
  }

describe('opening a redis store', { skip: missingReason('redis') }, () => {
  test('bad addresses and options are refused', async () => {
    const refused: [string, Record<string, unknown>?][] = [
      ['redis://localhost/x'],
      ['redis://localhost?prefix=a{b}'],
      ['redis://localhost', { prefix: '' }],
      ['redis://localhost', { partitions: 2 }],
      ['redis://localhost', { wait: -1 }],
      ['redis://localhost?timeout=soon'],
      ['redis://localhost', { client: {} }],
      ['redis://a:1,b:2/3'],
      ['redis://'.concat('[')],
    ]
    for (const [address, options] of refused)
      await assert.rejects(open(address, options ?? {}), code('InvalidOption'), address)
  })

  test('a server that is not there, or that does not let us in', async (t) => {
    await assert.rejects(open('redis://127.0.0.1:1?timeout=200', {}), code('StoreUnavailable', /127\.0\.0\.1:1/))
    const redis = await started(t, () => startRedis({ args: ['--requirepass', 'secret'] }))
    if (redis === undefined) return
    await assert.rejects(open(redis.url, { timeout: 1000 }), code('StoreUnavailable', /NOAUTH/))
    await assert.rejects(
      open(redis.url.replace('//', '//:wrong@'), { timeout: 1000 }),
      code('StoreUnavailable', /WRONGPASS/),
    )
    const store = await open(redis.url.replace('//', '//:secret@'), {})
    await store.operations.push({ jobs: [newJob()] })
    await store.close()
  })

  test('data of another version are StoreVersion', async () => {
    const url = serverUrl('redis') ?? ''
    const { store, prefix, dispose } = await openRedis(url)
    const client = connect(url)
    const key = `{${prefix}}:version`
    try {
      assert.equal(await client.get(key), null, 'opening a store writes nothing')
      await store.operations.push({ jobs: [newJob()] })
      assert.equal(await client.get(key), '2')
      await (await open(url, { prefix })).close()
      await client.set(key, 3)
      await assert.rejects(open(url, { prefix }), code('StoreVersion', /upgrade/))
      // The first version had 64 hash tags.
      await client.set(key, 1)
      await assert.rejects(open(url, { prefix }), code('StoreVersion', /older/))
    } finally {
      client.disconnect()
      await dispose()
    }
  })

  test('a server that drops keys when it is full is refused; one that refuses writes is not, and can be drained', async (t) => {
    const redis = await started(t, () => startRedis({ appendonly: false, args: ['--maxmemory', '20mb'] }))
    if (redis === undefined) return
    await redis.command('config', 'set', 'maxmemory-policy', 'allkeys-lru')
    await assert.rejects(open(redis.url, {}), code('StoreUnavailable', /allkeys-lru/))
    await redis.command('config', 'set', 'maxmemory-policy', 'noeviction')
    const store = await open(redis.url, {})
    const other = await open(redis.url, {})
    try {
      const waiting = newJobs(12, { queue: 'p' })
      await other.operations.push({ jobs: waiting })
      const pad = 'x'.repeat(10_000)
      let pushed = 0
      await assert.rejects(
        async () => {
          for (;;) {
            await store.operations.push({ jobs: newJobs(100, { data: { encoding: 'json', body: `"${pad}"` } }) })
            pushed += 100
          }
        },
        code('StoreFull', /room/),
      )
      const [stats] = await store.operations.stats({ queue: 'q' })
      assert.equal(stats?.counts.waiting, pushed, 'of a refused push nothing is stored')
      await other.operations.configure({ queue: 'p', paused: true })
      assert.deepEqual((await claim(other, { queue: 'p' })).jobs, [])
      await other.operations.configure({ queue: 'p', paused: false })
      await store.operations.configure({ queue: 'q', keepDone: 0 }).catch(code('StoreFull'))
      const [held] = (await claim(store, { limit: 1 })).jobs
      assert.ok(held)
      // Nobody has looked for them yet, so that whoever does is noted first.
      for (const [queue, id] of [
        ['q', held.id],
        ['p', waiting[0]?.id ?? ''],
      ] as const)
        assert.equal((await other.operations.find({ ids: [id] }))[0]?.queue, queue)
      assert.deepEqual(await store.operations.fail({ queue: 'q', items: [{ ...held, error: ERROR, delay: 0 }] }), [
        'retry',
      ])
      assert.deepEqual(await store.operations.cancel({ ids: [held.id] }), ['cancelled'])
      const ids = new Set<string>()
      while (ids.size < waiting.length) {
        const { jobs } = await claim(other, { queue: 'p', limit: 1 })
        assert.equal(jobs.length, 1)
        for (const { id } of jobs) ids.add(id)
        assert.deepEqual(await complete(other, jobs, 'p'), ['ok'])
      }
      assert.deepEqual((await claim(other, { queue: 'p', limit: 1 })).jobs, [])
      for (let done = 1; done < pushed; ) {
        const { jobs } = await claim(store, { limit: 50 })
        assert.ok(jobs.length > 0)
        const extended = await store.operations.extend({
          queue: 'q',
          lease: 1000,
          items: jobs.map((job) => ({ ...job, progress: null })),
        })
        assert.ok(extended.every((outcome) => outcome === 'ok'))
        assert.ok((await complete(store, jobs)).every((outcome) => outcome === 'ok'))
        done += jobs.length
      }
    } finally {
      await other.close()
      await store.close()
    }
  })

  const docs = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
  const rule = /^ACL SETUSER queue (.*)$/m.exec(docs)?.[1] ?? ''

  test('the user of docs/redis.md may run every command of the scripts', () => {
    const folder = new URL('../../contract/redis/', import.meta.url)
    const scripts = readdirSync(folder).filter((name) => name.endsWith('.lua'))
    const named = scripts.flatMap((name) => [
      ...readFileSync(new URL(name, folder), 'utf8').matchAll(/\bcall\('([A-Z]+)'/g),
    ])
    const commands = new Set(named.map(([, command = '']) => command.toLowerCase()))
    assert.ok(commands.size > 30)
    const allowed = new Set(rule.split(' '))
    assert.deepEqual(
      [...commands].filter((command) => !allowed.has(`+${command}`)),
      [],
    )
  })

  test('the user of docs/redis.md can do everything, and nothing elsewhere', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    assert.equal(await redis.command('acl', 'setuser', 'queue', ...rule.split(' ')), 'OK')
    const store = await open(redis.url.replace('//', '//queue:secret@'), {})
    try {
      const heard: Bell[] = []
      store.listen((bell) => heard.push(bell))
      await everything(store)
      await everythingOfLimits(store)
      await everythingOfSchedules(store)
      await everythingOfSteps(store)
      const user = new Redis(redis.url.replace('//', '//queue:secret@'), { lazyConnect: true, enableReadyCheck: false })
      await user.connect()
      await assert.rejects(user.get('other'), /NOPERM/)
      await assert.rejects(user.set('{millpond2}:jobs', '1'), /NOPERM/)
      await assert.rejects(user.flushall(), /NOPERM/)
      await assert.rejects(user.keys('*'), /NOPERM/)
      user.disconnect()
    } finally {
      await store.close()
    }
  })

  test('what was acknowledged with wait=1 is on a replica; without enough of them it is said', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const replica = await started(t, () => startRedis({ replicaOf: redis }))
    if (replica === undefined) return
    const store = await open(redis.url, { wait: 1, timeout: 2000 })
    const greedy = await open(redis.url, { wait: 2, timeout: 500 })
    try {
      const jobs = newJobs(3)
      await store.operations.push({ jobs })
      assert.equal(await replica.command('hlen', '{millpond}:jobs'), '3')
      await assert.rejects(greedy.operations.push({ jobs: newJobs(1) }), code('StoreUnavailable', /1 of 2 replicas/))
      const [stats] = await store.operations.stats({})
      assert.equal(stats?.counts.waiting, 4, 'it is stored all the same')
      const held = (await claim(store)).jobs
      assert.deepEqual(await complete(store, held), ['ok', 'ok', 'ok', 'ok'])
      await store.operations
        .push({ jobs })
        .then((outcomes) => assert.ok(outcomes.every(({ status }) => status === 'existing')))
    } finally {
      await store.close()
      await greedy.close()
    }
  })
})
