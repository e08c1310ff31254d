import assert from 'node:assert/strict'
import { test } from 'node:test'
import { started } from './fixtures.ts'
import { startRedisCluster } from './redis-cluster.ts'

test('Redis Cluster: six nodes, and a replica takes over from a killed master', async (t) => {
  const cluster = await started(t, () => startRedisCluster({ nodeTimeout: 1000 }))
  if (cluster === undefined) return
  assert.match(cluster.url, /^redis:\/\/127\.0\.0\.1:\d+,127\.0\.0\.1:\d+,127\.0\.0\.1:\d+$/)
  assert.equal(cluster.nodes.length, 6)
  const masters = await cluster.masters()
  assert.equal(masters.length, 3)
  for (const { port } of masters) assert.ok(cluster.url.includes(`:${port}`))
  const [first, second] = masters
  assert.ok(first && second)
  assert.equal((await first.command('cluster', 'nodes')).match(/ connected/g)?.length, 6)

  await first.kill('SIGKILL')
  await cluster.ok()
  const after = await cluster.masters()
  assert.equal(after.length, 3)
  assert.ok(!after.includes(first))
  // Redirects lead from any node to those that serve the slots now.
  for (const key of 'abcdefghijklmnop') assert.equal(await second.command('-c', 'set', key, '1'), 'OK')

  await first.restart()
  await cluster.whole()
  assert.match(await first.command('role'), /^slave/)
})
