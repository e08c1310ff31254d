/** Redis Cluster: a pond lives in one slot; masters that fail. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { openRedis } from './redis-fixture.ts'

describe('redis cluster', { skip: missingReason('redis-cluster') }, () => {
  test('twenty queues in one slot: bells for each, and look-ups over all', async () => {
    const url = serverUrl('redis-cluster') ?? ''
    const { store, prefix, dispose } = await openRedis(url)
    const sleeper = await open(`${url}?prefix=${prefix}`, {})
    try {
      const heard = new Set<string>()
      sleeper.listen(({ queue }) => heard.add(queue))
      const queues = Array.from({ length: 20 }, (_, i) => `q${i}`)
      for (let tries = 0; heard.size < queues.length; tries++) {
        assert.ok(tries < 1000, `bells only of ${[...heard]}`)
        await Promise.all(queues.map((queue) => claim(sleeper, { queue })))
        await store.operations.push({ jobs: queues.map((queue) => newJob({ queue })) })
        await sleep(5)
      }
      const jobs = (await Promise.all(queues.map((queue) => claim(store, { queue })))).flatMap(({ jobs }) => jobs)
      assert.ok(
        (await store.operations.find({ ids: jobs.map(({ id }) => id) })).every((record) => record?.state === 'running'),
      )
      assert.equal((await store.operations.stats({})).length, queues.length)
    } finally {
      await sleeper.close()
      await dispose()
    }
  })

  test('a master killed under load: with wait=1 nothing acknowledged is lost, and all goes on by itself', async (t) => {
    const cluster = await started(t, () => startRedisCluster({ nodeTimeout: 1000 }))
    if (cluster === undefined) return
    const pond = await Millpond.open(`${cluster.url}?wait=1`, { timeout: 3000 })
    pond.on('error', () => undefined)
    const connections = async (): Promise<number> => {
      const running = cluster.nodes.filter(({ alive }) => alive)
      const lists = await Promise.all(running.map((node) => node.command('client', 'list')))
      return lists
        .join('\n')
        .split('\n')
        .filter((line) => /user=default/.test(line) && !/ flags=[SM] |cmd=client/.test(line)).length
    }
    try {
      const queue = pond.queue<number>('q', { lease: '3s' })
      const acknowledged = new Set<string>()
      const done = new Set<string>()
      let going = true
      queue.work((job) => void done.add(job.id), { concurrency: 20 })
      const push = async (): Promise<void> => {
        while (going) {
          try {
            acknowledged.add((await queue.push(1)).id)
          } catch (error) {
            assert.ok(isMillpondError(error, 'StoreUnavailable'), String(error))
          }
          await sleep(2)
        }
      }
      const pushing = Promise.all([push(), push(), push(), push()])
      await until(() => acknowledged.size > 100, 'some are acknowledged')
      await Promise.all(Array.from({ length: 20 }, (_, i) => pond.queue(`q${i}`).push(1)))
      const open = await connections()
      assert.ok(open >= 1 && open <= 10, `${open} connections`)
      const victim = await cluster.masterOf()
      await victim.kill('SIGKILL')
      await cluster.ok()
      // Without it the new master has no replica that could confirm anything.
      await victim.restart()
      await cluster.whole()
      const before = acknowledged.size
      for (let waited = 0; acknowledged.size < before + 300; waited++) {
        assert.ok(waited < 3000, 'pushes go on')
        await sleep(10)
      }
      going = false
      await pushing
      for (let waited = 0; [...acknowledged].some((id) => !done.has(id)); waited++) {
        assert.ok(
          waited < 2000,
          `${[...acknowledged].filter((id) => !done.has(id)).length} of ${acknowledged.size} not done`,
        )
        await sleep(10)
      }
    } finally {
      await pond.close({ timeout: 1000 })
    }
  })
})
