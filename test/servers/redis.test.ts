import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { untilCalm } from '../support/until.ts'
import { isAlive, started } from './fixtures.ts'
import { startRedis } from './redis.ts'

test('Redis answers, keeps its data and its port through SIGKILL and restarts, and leaves nothing behind', async (t) => {
  const redis = await started(t, () => startRedis({ appendfsync: 'always', maxmemoryPolicy: 'allkeys-lru' }))
  if (redis === undefined) return
  assert.equal(await redis.command('ping'), 'PONG')
  assert.equal(redis.url, `redis://127.0.0.1:${redis.port}`)
  assert.match(await redis.command('config', 'get', 'appendfsync'), /always/)
  assert.match(await redis.command('config', 'get', 'maxmemory-policy'), /allkeys-lru/)
  const { pid, port, folder } = redis

  await redis.command('set', 'a', '1')
  await redis.kill('SIGKILL')
  assert.ok(!redis.alive && !isAlive(pid))
  await assert.rejects(redis.command('ping'), /refused/)
  await redis.restart()
  assert.notEqual(redis.pid, pid)
  assert.equal(redis.port, port)
  assert.equal(await redis.command('get', 'a'), '1')

  const second = redis.pid
  await redis.command('set', 'a', '2')
  await redis.kill('SIGSTOP')
  await redis.restart()
  assert.ok(!isAlive(second))
  assert.equal(await redis.command('get', 'a'), '2')

  await redis.stop()
  assert.ok(!isAlive(redis.pid))
  assert.ok(!existsSync(folder))
  await redis.stop()
})

test('what Redis says when it does not start is in the error', async (t) => {
  await assert.rejects(async () => {
    const redis = await started(t, () => startRedis({ args: ['--no-such-option', 'x'] }))
    if (redis === undefined) throw new Error('did not start: Bad directive') // skipped
  }, /did not start.*Bad directive/s)
})

test('a Redis replica has its master’s data from the start', async (t) => {
  const master = await started(t, () => startRedis())
  if (master === undefined) return
  await master.command('set', 'a', '1')
  const replica = await startRedis({ replicaOf: master })
  t.after(() => replica.stop())
  assert.equal(await replica.command('get', 'a'), '1')
  await master.command('set', 'a', '2')
  await untilCalm(async () => (await replica.command('get', 'a')) === '2', 'the write arrives')
})
