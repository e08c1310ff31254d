/** What calls of the scripts cost the server, counted: commands, keys that are read whole, bytes of the append-only file. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { openStore } from '../../src/stores/open.ts'
import { started } from '../servers/fixtures.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { newJobs } from '../support/jobs.ts'
import { bytesOfEnds } from './redis-aof.ts'
import { monitored } from './redis-monitor.ts'
import { type Clock, fanOf, Scene } from './redis-scene.ts'

/** Commands that read all that a key holds. */
const WHOLE_READS = new Set(['hgetall', 'hvals', 'hkeys', 'smembers', 'lrange'])
/** Elements that a key may have which a script reads whole. */
const FEW = 100
/** Already more than any call may look at. */
const SMALL = { groups: 1200, schedules: 120, blocked: 12_000, whole: 60, list: 20, page: 20 }
const TIMES = 3
const LARGE = {
  ...SMALL,
  groups: SMALL.groups * TIMES,
  schedules: SMALL.schedules * TIMES,
  blocked: SMALL.blocked * TIMES,
}

interface Cost {
  commands: number
  /** Keys that were read whole and hold many elements. */
  wholes: string[]
}

/** What each operation costs in a scene of those sizes, on a server of its own. */
async function costsOf(server: RedisServer, sizes: typeof SMALL): Promise<Map<string, Cost>> {
  await server.command('flushall')
  const clock: Clock = { now: Date.now() }
  const store = await openStore(server.url, { clock: () => clock.now })
  const look = new Redis(server.url)
  const costs = new Map<string, Cost>()
  const scene = new Scene(store, clock, sizes)
  await scene.fill()
  let heard: string[][] = []
  const stop = await monitored(server.url, (args, isScript) => {
    if (isScript) heard.push(args)
  })
  /** All commands before it have been heard of. */
  const settled = async () => {
    const mark = `mark-${Math.random()}`
    await look.eval(`return redis.call('EXISTS', KEYS[1])`, 1, mark)
    while (!heard.some((args) => args[1] === mark)) await new Promise(setImmediate)
  }
  try {
    for (const { name, isMany, prepare, run } of scene.steps()) {
      await prepare?.()
      await settled()
      heard = []
      await run()
      await settled()
      const commands = heard.slice(0, -1)
      const wholes = new Set<string>()
      for (const [command = '', key = ''] of commands) {
        if (!WHOLE_READS.has(command.toLowerCase())) continue
        const type = await look.type(key)
        const size = type === 'hash' ? await look.hlen(key) : type === 'set' ? await look.scard(key) : 0
        if (size > FEW) wholes.add(`${command} ${key} (${size})`)
      }
      if (isMany !== true) costs.set(name, { commands: commands.length, wholes: [...wholes] })
    }
    return costs
  } finally {
    stop()
    look.disconnect()
    await store.close()
  }
}

describe('what calls cost on Redis', () => {
  test('three times as many groups, schedules and blocked jobs cost no more', async (t) => {
    const server = await started(t, () => startRedis({ appendonly: false }))
    if (server === undefined) return
    const few = await costsOf(server, SMALL)
    const many = await costsOf(server, LARGE)
    const grown: string[] = []
    for (const [name, { commands, wholes }] of many) {
      const before = few.get(name)?.commands ?? 0
      if (commands > before * 1.5 + 20) grown.push(`${name}: ${before} commands, then ${commands}`)
      for (const whole of wholes) grown.push(`${name}: ${whole}`)
    }
    assert.deepEqual(grown, [])
  })

  test('the end of one of many parents writes little', async (t) => {
    const args = ['--auto-aof-rewrite-percentage', '0']
    const server = await started(t, () => startRedis({ appendfsync: 'no', args }))
    if (server === undefined) return
    const [count, ends] = [3000, 200]
    const linked = await bytesOfEnds(server, fanOf(count), ends)
    await server.command('flushall')
    const plain = await bytesOfEnds(server, newJobs(count, { queue: 'fan' }), ends)
    t.diagnostic(`${Math.round(linked)} bytes an end, ${Math.round(plain)} without a child`)
    assert.ok(linked - plain <= 300, `${linked - plain} bytes for the link`)
  })
})
