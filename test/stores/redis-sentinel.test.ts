/** Redis with Sentinel: URLs, passwords of both, and processes that it does not hold. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { Calls } from '../../src/stores/redis/connection/calls.ts'
import { open } from '../../src/stores/redis/index.ts'
import { storeSettings } from '../../src/stores/redis/settings.ts'
import { newClient } from '../../src/stores/redis-client/client.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { MASTER_NAME, startRedisSentinel } from '../servers/redis-sentinel.ts'
import { missingReason } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const invalid = (error: unknown): boolean => isMillpondError(error, 'InvalidOption')

describe('redis sentinel', { skip: missingReason('redis') }, () => {
  test('URLs that name no master, or a cluster, are refused', async () => {
    for (const url of [
      'redis+sentinel://127.0.0.1:1',
      'redis+sentinel://127.0.0.1:1/',
      'redis+sentinel://127.0.0.1:1/my%20master',
      'redis+sentinel://127.0.0.1:1/mymaster/x',
      'redis+sentinel://127.0.0.1:1/mymaster?cluster=true',
    ])
      await assert.rejects(Millpond.open(url), invalid, url)
  })

  test('passwords of the servers and of the sentinels, and the database', async (t) => {
    const passwords = { password: 'of-servers', sentinelPassword: 'of-sentinels' }
    const redis = await started(t, () => startRedisSentinel({ replicas: 1, ...passwords }))
    if (redis === undefined) return
    const withUser = redis.url.replace('//', `//:${passwords.password}@`)
    const store = await open(`${withUser}/3`, { sentinelPassword: passwords.sentinelPassword })
    const same = await open(`${withUser}/3?sentinelPassword=${passwords.sentinelPassword}`, {})
    t.after(() => Promise.all([store.close(), same.close()]))
    const job = newJob()
    await store.operations.push({ jobs: [job] })
    assert.equal((await claim(same)).jobs[0]?.id, job.id)
    const master = await redis.master()
    assert.ok(master)
    assert.match(await redis.command(master, 'info', 'keyspace'), /^db3:/m)
    for (const url of [redis.url, withUser, `${withUser}?sentinelPassword=wrong`])
      await assert.rejects(open(url, { timeout: 500 }), (error) => isMillpondError(error, 'StoreUnavailable'))
  })

  test('a process with an open pond ends by itself', async (t) => {
    const redis = await started(t, () => startRedisSentinel({ replicas: 1 }))
    if (redis === undefined) return
    const code = `
      const { Millpond } = await import(${JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)})
      const pond = await Millpond.open(${JSON.stringify(redis.url)})
      await pond.queue('q').push(1)
      console.log('pushed')`
    const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', code], { stdio: 'pipe' })
    let words = ''
    child.stdout.on('data', (chunk) => (words += String(chunk)))
    child.stderr.on('data', (chunk) => (words += String(chunk)))
    const [exit] = await once(child, 'exit')
    assert.deepEqual([exit, words], [0, 'pushed\n'])
  })

  test('sentinels that fall silent while a connection is made: the store goes on once they answer', async (t) => {
    const redis = await started(t, () => startRedisSentinel({ replicas: 1, downAfter: 60_000 }))
    if (redis === undefined) return
    const store = await open(redis.url, { timeout: 300 })
    t.after(() => store.close())
    const refused = (error: unknown): boolean => isMillpondError(error, 'StoreUnavailable')
    await store.operations.push({ jobs: [newJob()] })
    const master = await redis.master()
    assert.ok(master)
    for (const sentinel of redis.sentinels) await sentinel.kill('SIGSTOP')
    await redis.command(master, 'client', 'kill', 'type', 'normal')
    // Each of them lasts longer than it takes to replace a connection.
    for (let calls = 0; calls < 4; calls++) await assert.rejects(store.operations.push({ jobs: [newJob()] }), refused)
    for (const sentinel of redis.sentinels) await sentinel.kill('SIGCONT')
    await until(async () => {
      const outcomes = await store.operations
        .push({ jobs: [newJob()] })
        .catch((error: unknown) => assert.ok(refused(error)))
      return outcomes !== undefined
    }, 'pushes work again')
  })

  test('a connection that is cut while it is being made is made again', async (t) => {
    const redis = await started(t, () => startRedisSentinel({ replicas: 1 }))
    if (redis === undefined) return
    const settings = storeSettings(redis.url, {})
    const client = await newClient(settings)
    t.after(() => client.disconnect())
    client.disconnect(true)
    await new Promise<void>((resolve) => client.once('end', resolve))
    assert.equal(await new Calls(client, settings).command('ping').then(String), 'PONG')
  })

  test('a client of the caller’s goes through its sentinels', async (t) => {
    const redis = await started(t, () => startRedisSentinel())
    if (redis === undefined) return
    const sentinels = redis.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
    const client = new Redis({ sentinels, name: MASTER_NAME })
    client.on('error', () => undefined)
    const store = await open('redis://', { client, timeout: 1000, wait: 1 })
    t.after(async () => {
      await store.close()
      client.disconnect()
    })
    const jobs = newJobs(10)
    await store.operations.push({ jobs })
    const victim = await redis.master()
    assert.ok(victim)
    await victim.kill('SIGKILL')
    await redis.promoted(victim)
    let found = 0
    await until(async () => {
      const records = await store.operations.find({ ids: jobs.map(({ id }) => id) }).catch(() => [])
      found = records.filter((record) => record?.state === 'waiting').length
      return records.length > 0
    }, 'the jobs are found on the new master')
    assert.equal(found, 10)
  })
})
