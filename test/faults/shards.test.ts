/** One of three Redis servers of a pond is killed under load, and comes back: only jobs of its queues are late, and none is lost. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { shardOf } from '../../src/stores/shards/route.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'

const COUNT = 3
const AWAY = 1

const queueIn = (shard: number): string => {
  for (let n = 0; ; n++) if (shardOf(`queue${n}`, COUNT) === shard) return `queue${n}`
}

test('one server of three is killed: the others go on, and nothing acknowledged is lost', {
  skip: missingReason('redis'),
}, async (t) => {
  const args = ['--appendonly', 'yes', '--appendfsync', 'always']
  const servers = await Promise.all(Array.from({ length: COUNT }, () => startRedis({ args })))
  t.after(() => Promise.all(servers.map((server) => server.stop())))
  const urls = servers.map(({ url }) => `${url}?timeout=1000`)
  const producer = await Millpond.open(urls)
  const worker = await Millpond.open(urls.join(','))
  t.after(() => Promise.all([producer.close({ timeout: 0 }), worker.close({ timeout: 0 })]))
  worker.on('error', () => {})

  const names = [0, 1, 2].map(queueIn)
  const acknowledged = new Map<string, string>()
  const done = new Set<string>()
  let isOver = false
  let refused = 0
  for (const name of names) {
    worker.queue(name).work(async ({ id }) => {
      done.add(id)
    })
  }
  const pushing = names.map(async (name) => {
    while (!isOver) {
      try {
        acknowledged.set((await producer.queue(name).push(null)).id, name)
      } catch (error) {
        assert.ok(isMillpondError(error, 'StoreUnavailable'), String(error))
        refused++
      }
    }
  })
  const doneOf = (name: string) => [...done].filter((id) => acknowledged.get(id) === name).length
  const more = async (some: readonly string[], what: string) => {
    const goals = some.map((name) => [name, doneOf(name) + 50] as const)
    await until(() => goals.every(([name, goal]) => doneOf(name) >= goal), what)
  }
  await more(names, 'all are at work')

  await servers[AWAY]?.kill('SIGKILL')
  await until(() => refused > 0, 'pushes to the queue of the server are refused')
  await more(
    names.filter((_, shard) => shard !== AWAY),
    'the others go on',
  )
  await assert.rejects(producer.stats(), { code: 'StoreUnavailable', message: /^shard 2 of 3: / })
  const [known] = [...acknowledged].find(([, name]) => name === names[0]) ?? []
  assert.equal((await producer.job(known ?? ''))?.queue, names[0])
  const late = await Millpond.open(urls)
  t.after(() => late.close({ timeout: 0 }))
  await late.queue(names[0] ?? '').push(null)

  await servers[AWAY]?.restart()
  await more(names, 'all are at work again')
  isOver = true
  await Promise.all(pushing)
  await until(() => [...acknowledged.keys()].every((id) => done.has(id)), 'all that was acknowledged is done')
  assert.equal((await late.stats()).length, COUNT)
})
