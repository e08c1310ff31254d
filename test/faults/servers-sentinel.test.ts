/**
 * Redis with Sentinel: the master is killed (SIGKILL) or stopped (SIGSTOP) under load, and a replica takes over. Every push and ending waits for
 * one replica (`?wait=1`), so that what was acknowledged survives its master.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { started } from '../servers/fixtures.ts'
import { startRedisSentinel } from '../servers/redis-sentinel.ts'
import { depth } from '../support/depth.ts'
import { Crew } from './crew.ts'
import { seeded } from './harness.ts'
import { judge, notesOf } from './verdict.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const ROUNDS = depth(1, 4)

for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
  test(`redis sentinel: nothing acknowledged is lost when a master gets ${signal} and its replica takes over`, async (t) => {
    const redis = await started(t, () => startRedisSentinel())
    if (redis === undefined) return
    const random = seeded(SEED)
    const url = `${redis.url}?wait=1&timeout=2000`
    const crew = new Crew(t, { url, transaction: false })
    await crew.atWork()
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(random() * 150)
      const victim = await redis.master()
      assert.ok(victim)
      await victim.kill(signal)
      await redis.promoted(victim)
      await crew.goOn()
      // It comes back as a replica: one that was only stopped takes itself for the master at first, and nobody may believe it.
      if (signal === 'SIGKILL') await victim.restart()
      else await victim.kill('SIGCONT')
      await redis.whole()
      await crew.goOn()
    }
    await crew.settle()
    const figures = judge(t, `redis sentinel, ${ROUNDS} × ${signal}, seed ${SEED}`, crew, notesOf(crew, []), {
      transaction: false,
      claimsUndone: true,
      pushesUndone: true,
    })
    assert.ok(figures.acknowledged > ROUNDS * 10, 'this was no load')
  })
}
