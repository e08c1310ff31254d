/**
 * Redis Cluster: masters are killed (SIGKILL) under load, and their replicas take over. Every push and ending waits for one replica
 * (`?wait=1`), so that what was acknowledged survives its master.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { started } from '../servers/fixtures.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { depth } from '../support/depth.ts'
import { Crew } from './crew.ts'
import { seeded } from './harness.ts'
import { judge, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = depth(1, 3)

test('redis cluster: nothing acknowledged is lost when a master is killed and its replica takes over', async (t) => {
  const cluster = await started(t, () => startRedisCluster({ nodeTimeout: 1000 }))
  if (cluster === undefined) return
  const random = seeded(SEED)
  const crew = new Crew(t, { url: `${cluster.url}?wait=1`, transaction: false })
  await crew.atWork()
  for (let round = 0; round < ROUNDS; round++) {
    await sleep(random() * 150)
    const victim = await cluster.masterOf()
    await victim.kill('SIGKILL')
    await cluster.ok()
    // Until it is back, the pond has one copy, and refuses what has to have two.
    await victim.restart()
    await cluster.whole()
    await crew.goOn()
  }
  await crew.settle()
  const figures = judge(t, `redis cluster, ${ROUNDS} masters killed, seed ${SEED}`, crew, notesOf(crew, []), {
    transaction: false,
    claimsUndone: true,
    pushesUndone: true,
  })
  assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
})
