/**
 * Four processes push graphs, lists with callbacks and keys over queues with limits, groups and a capacity, change jobs in bulk, and fire
 * schedules, while processes and servers are killed (SIGKILL). MILLPOND_FAULT_SEED sets the jobs, the victims and the moments.
 */
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { startRedisSentinel } from '../servers/redis-sentinel.ts'
import { depth } from '../support/depth.ts'
import { ChaosCrew } from './chaos-crew.ts'
import { judgeChaos } from './chaos-verdict.ts'
import { DURABLE_STORES } from './places.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const KILLS = depth(2, 12)
const JOBS = depth(300, 5000)
/** In ms: after it, what a killed process held starts again. Longer where a server is away for a while. */
const LEASE = 1000
const LONG_LEASE = 5000
const AWAY = ['StoreUnavailable']

describe('nothing is lost, torn, stuck, early, over a limit or fired twice', () => {
  for (const name of ['sqlite', 'postgres', 'redis']) {
    test(`${name}: processes are killed`, async (t) => {
      const url = await DURABLE_STORES[name]?.(t)
      if (url === undefined) return
      const crew = await ChaosCrew.start(t, { url, seed: SEED, jobs: JOBS, lease: LEASE, rounds: KILLS })
      for (let round = 1; round <= KILLS; round++) {
        await crew.underLoad(round)
        await crew.killOne()
      }
      await crew.settle()
      await judgeChaos(t, crew, { refusals: name === 'sqlite' ? ['StoreBusy'] : [] })
    })
  }

  test('redis: processes and the server are killed', async (t) => {
    const server = await started(t, () => startRedis({ appendfsync: 'always' }))
    if (server === undefined) return
    const { url } = server
    const crew = await ChaosCrew.start(t, { url, seed: SEED, jobs: JOBS, lease: LONG_LEASE, rounds: KILLS })
    for (let round = 1; round <= KILLS; round++) {
      await crew.underLoad(round)
      await server.kill('SIGKILL')
      if (round % 2 === 0) await crew.killOne()
      await server.restart()
    }
    await crew.settle()
    await judgeChaos(t, crew, { refusals: AWAY })
  })

  test('redis sentinel, wait=1: masters are killed', async (t) => {
    const redis = await started(t, () => startRedisSentinel())
    if (redis === undefined) return
    const url = `${redis.url}?wait=1&timeout=2000`
    const rounds = Math.max(1, Math.floor(KILLS / 3))
    const crew = await ChaosCrew.start(t, { url, seed: SEED, jobs: JOBS, lease: LONG_LEASE, rounds })
    for (let round = 1; round <= rounds; round++) {
      await crew.underLoad(round)
      const victim = await redis.master()
      if (victim === undefined) throw new Error('the sentinels name no master')
      await victim.kill('SIGKILL')
      await redis.promoted(victim)
      await victim.restart()
      await redis.whole()
    }
    await crew.settle()
    await judgeChaos(t, crew, { refusals: AWAY, claimsUndone: true })
  })
})
