/** What is particular to the Redis store, on one server. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Bell, Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { within } from '../../src/values/time/within.ts'
import { claim, first, running } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, NULL, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import {
  complete,
  everything,
  everythingOfLimits,
  everythingOfSchedules,
  everythingOfSteps,
} from './redis-everything.ts'
import { faultyClient } from './redis-faults.ts'
import { freshPrefix, keysOf, openRedis, removePrefix } from './redis-fixture.ts'
import { monitored } from './redis-monitor.ts'

const url = serverUrl('redis') ?? ''
/** Does something until it is heard of: listening begins by itself, some time after `listen`. */
async function hears(heard: () => boolean, doing: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; !heard(); tries++) {
    assert.ok(tries < 1000, 'nothing was heard')
    await doing()
    await sleep(5)
  }
}

test('each operation of the contract has its script, headed by what it takes, gives and keeps', () => {
  const read = (file: string) => readFileSync(new URL(`../../contract/${file}`, import.meta.url), 'utf8')
  const operations = [...read('operations.md').matchAll(/^### (\w+)$/gm)].map((match) => match[1])
  assert.ok(operations.length >= 12)
  // Bells are rung by the others, and heard on a channel.
  for (const operation of ['list', 'requeue', ...operations.filter((name) => name !== 'listen')]) {
    if (operation === 'transactions') continue
    const script = read(`redis/${operation}.lua`)
    assert.match(script, new RegExp(`^(-- @include [\\w-]+.lua\n)+-- ${operation}: `), operation)
    for (const part of ['Head', 'In', 'Out']) assert.match(script, new RegExp(`^-- ${part}: `, 'm'), operation)
  }
})

describe('redis store', { skip: missingReason('redis') }, () => {
  const onStore = (title: string, check: (store: Store, prefix: string) => Promise<void>) =>
    test(title, async () => {
      const { store, prefix, dispose } = await openRedis(url)
      try {
        await check(store, prefix)
      } finally {
        await dispose()
      }
    })

  onStore('prefixes keep stores apart, and scripts touch no key outside of their own', async (_, prefix) => {
    const client = new Redis(url)
    const strays: string[] = []
    let isOurs = false
    let seen = 0
    // What the monitor hears comes on a connection of its own: all was heard when it has heard this.
    const end = `${prefix}-end`
    const { promise: ended, resolve: heardEnd } = Promise.withResolvers<void>()
    const stop = await monitored(url, (args, isScript) => {
      const [command = '', script = '', count, key] = args
      if (script === end) heardEnd()
      if (!isScript) {
        isOurs = /^eval(sha)?$/i.test(command) && count === '1' && key === `{${prefix}}:`
        return
      }
      if (!isOurs) return
      seen++
      const [name, first = ''] = [command.toLowerCase(), script]
      if (!['time', 'info'].includes(name) && !first.startsWith(`{${prefix}}:`)) strays.push(args.join(' '))
    })
    const store = await open(`${url}?prefix=${prefix}`, {})
    try {
      await everything(store)
      await everythingOfLimits(store)
      await everythingOfSchedules(store)
      await everythingOfSteps(store)
      await client.set(end, '1', 'PX', 1)
      await ended
      assert.ok(seen > 100, `${seen}`)
      assert.deepEqual(strays, [])
      assert.ok((await keysOf(client, prefix)).every((key) => key.startsWith(`{${prefix}}:`)))
    } finally {
      stop()
      client.disconnect()
      await store.close()
    }
    const other = await openRedis(url)
    try {
      assert.deepEqual(await other.store.operations.stats({}), [])
    } finally {
      await other.dispose()
    }
  })

  onStore('scripts that the server has forgotten are sent again, within one tick too', async (store) => {
    await store.operations.push({ jobs: [newJob({ queue: 'known' })] })
    const client = new Redis(url)
    await client.script('FLUSH')
    client.disconnect()
    const [pushed, claimed] = await Promise.all([
      store.operations.push({ jobs: [newJob({ queue: 'known' })] }),
      claim(store, { queue: 'known' }),
    ])
    assert.equal(pushed[0]?.status, 'pushed')
    assert.ok(claimed.jobs.length >= 1)
  })

  test('a client of the caller’s own is used, and left open', async () => {
    const client = new Redis(url)
    const prefix = freshPrefix()
    try {
      const store = await open(url, { client, prefix })
      store.listen(() => undefined)
      await everything(store)
      await store.close()
      assert.equal(await client.ping(), 'PONG')
    } finally {
      client.disconnect()
      await removePrefix(url, prefix)
    }
  })

  onStore(
    'jobs that came back and jobs cancelled on the way are claimed by place, in claims of any size',
    async (store) => {
      for (let round = 0; round < 30; round++) {
        const jobs = newJobs(40)
        await store.operations.push({ jobs })
        const held = (await claim(store, { limit: 20 })).jobs
        await store.operations.release({ queue: 'q', items: held.filter((_, i) => i % 3 > 0) })
        await complete(
          store,
          held.filter((_, i) => i % 3 === 0),
        )
        const cancelled = jobs.filter((_, i) => i % 7 === round % 7 && !(i < 20 && i % 3 === 0))
        await store.operations.cancel({ ids: cancelled.map(({ id }) => id) })
        await store.operations.requeue({ ids: cancelled.filter((_, i) => i % 2 === 0).map(({ id }) => id) })
        const expected = jobs.filter(
          (job, i) => !(i < 20 && i % 3 === 0) && (!cancelled.includes(job) || cancelled.indexOf(job) % 2 === 0),
        )
        const claimed: string[] = []
        for (let limit = 1 + (round % 5); ; ) {
          const { jobs: some } = await claim(store, { limit })
          claimed.push(...some.map(({ id }) => id))
          await complete(store, some)
          if (some.length < limit) break
        }
        assert.deepEqual(
          claimed,
          expected.map(({ id }) => id),
        )
      }
    },
  )

  onStore('large jobs are claimed in order by several calls, and each of them once', async (store) => {
    const jobs = newJobs(30, { data: { encoding: 'bytes', body: new Uint8Array(700_000) } })
    for (let i = 0; i < jobs.length; i += 5) await store.operations.push({ jobs: jobs.slice(i, i + 5) })
    const { jobs: claimed } = await claim(store, { limit: 25 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      jobs.slice(0, 25).map(({ id }) => id),
    )
    await store.operations.release({ queue: 'q', items: claimed })
    assert.equal((await claim(store, { limit: 100 })).jobs.length, 30)
  })

  onStore('settings that another language has written are changed', async ({ operations }, prefix) => {
    await operations.configure({ queue: 'q', attempts: 3 })
    const client = new Redis(url)
    const [key = ''] = (await keysOf(client, prefix)).filter((one) => one.endsWith(':q:queue'))
    // The same JSON, with spaces.
    await client.hset(key, { code: '{ "attempts": 3 }', operator: '{ "lease": 4000 }' })
    client.disconnect()
    const call = operations.configure({ queue: 'q', attempts: 4, lease: 5000 })
    assert.deepEqual(await within(5000, call), ['lease'])
    const { code, operator } = (await operations.settings({ queue: 'q' })) ?? {}
    assert.deepEqual([code, operator], [{ attempts: 4, lease: 5000 }, { lease: 4000 }])
  })

  onStore('dead jobs whose key is taken do not stand in the way of others', async (store) => {
    const jobs = [newJob({ key: 'taken' }), newJob(), newJob()]
    await store.operations.push({ jobs })
    const dead = (await claim(store)).jobs.map((job) => ({ ...job, error: ERROR, delay: null }))
    for (const one of dead) await store.operations.fail({ queue: 'q', items: [one] })
    await store.operations.push({ jobs: [newJob({ key: 'taken' })] })
    assert.equal((await store.operations.requeue({ queue: 'q', limit: 2 })).requeued, 2)
    assert.equal((await store.operations.requeue({ queue: 'q', limit: 2 })).requeued, 0)
  })

  test('a sleeper in another process is woken, and a burst rings once', async () => {
    const { store: sleeper, prefix, dispose } = await openRedis(url)
    const pusher = await open(`${url}?prefix=${prefix}`, {})
    try {
      const heard: Bell[] = []
      sleeper.listen((bell) => heard.push(bell))
      await pusher.operations.push({ jobs: [newJob()] })
      await complete(sleeper, (await claim(sleeper)).jobs)
      const work = () => heard.filter(({ kind }) => kind === 'work').length
      await hears(
        () => work() > 0,
        () => claim(sleeper).then(() => pusher.operations.push({ jobs: [newJob()] })),
      )
      // Whatever is under way has been told when this bell has come.
      await sleeper.operations.configure({ queue: 'q', capacity: 5 })
      await complete(sleeper, (await claim(sleeper)).jobs)
      const before = work()
      for (let i = 0; i < 4; i++) await pusher.operations.push({ jobs: [newJob()] })
      await until(() => work() > before, 'the burst')
      const job = first((await claim(sleeper, { limit: 1 })).jobs)
      await sleeper.operations.outcomes({ ids: [job.id] })
      await pusher.operations.complete({ queue: 'q', items: [{ ...job, result: null }] })
      await until(() => heard.some((bell) => bell.kind === 'finished' && bell.ids?.includes(job.id)), 'the end')
      assert.equal(work(), before + 1)
      const held = first((await claim(sleeper, { limit: 1 })).jobs)
      await pusher.operations.cancel({ ids: [held.id] })
      await until(() => heard.some((bell) => bell.kind === 'cancelled' && bell.ids?.includes(held.id)), 'the cancel')
    } finally {
      await pusher.close()
      await dispose()
    }
  })

  test('a room in another process is told to whoever met a full queue', async () => {
    const { store: full, prefix, dispose } = await openRedis(url)
    const worker = await open(`${url}?prefix=${prefix}`, {})
    try {
      const heard: Bell[] = []
      full.listen((bell) => heard.push(bell))
      await full.operations.configure({ queue: 'q', capacity: 1 })
      await hears(
        () => heard.some(({ kind }) => kind === 'room'),
        () => full.operations.push({ jobs: [newJob(), newJob()] }).then(() => claim(worker)),
      )
    } finally {
      await worker.close()
      await dispose()
    }
  })

  onStore('a schedule that the server has lost is made again; one that was removed is not', async (store, prefix) => {
    const job = { queue: 'q', priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null, data: NULL }
    const times = { when: 'every 1h', tz: 'UTC', missed: 'once' as const, jitter: 0, from: null, until: null }
    const declare = (again: boolean) =>
      store.operations.declare({ schedules: [{ name: 's', version: '1', ...times, paused: false, again, job }] })
    assert.deepEqual(await declare(false), ['created'])
    await removePrefix(url, prefix)
    assert.deepEqual(await declare(true), ['created'])
    assert.deepEqual(await declare(true), ['same'])
    assert.equal(await store.operations.removeSchedule({ name: 's' }), true)
    assert.deepEqual(await declare(true), ['unknown'])
    assert.deepEqual(await declare(false), ['created'])
  })

  onStore('an ending that is told again in doubt is told what came of it', async (store, prefix) => {
    // A client that loses every answer to an ending once, after the server has acted.
    const forgetful = faultyClient(url)
    const lost = new Set<string>()
    forgetful.fault = (script) => (lost.delete(script) ? 'lost' : undefined)
    const other = await open(url, { client: forgetful.client, prefix })
    const loseEach = (): void => {
      for (const name of ['complete', 'fail', 'release', 'push', 'claim'] as const) lost.add(name)
    }
    try {
      await everything(other)
      loseEach()
      const twice = newJob({ queue: 'q2' })
      await store.operations.push({ jobs: [newJob({ queue: 'q2' })] })
      assert.deepEqual(await other.operations.push({ jobs: [twice] }), [{ status: 'pushed', id: twice.id }])
      const before = (await store.operations.stats({ queue: 'q' }))[0]?.counts.running ?? 0
      const [a, b, c] = [await running(store), await running(store), await running(store)]
      const error = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }
      assert.deepEqual(await other.operations.complete({ queue: 'q', items: [{ ...a, result: null }] }), ['ok'])
      assert.deepEqual(await other.operations.fail({ queue: 'q', items: [{ ...b, error, delay: null }] }), ['dead'])
      assert.deepEqual(await other.operations.release({ queue: 'q', items: [c] }), ['ok'])
      const waiting = newJobs(3)
      await store.operations.push({ jobs: waiting })
      await store.operations.push({ jobs: newJobs(3) })
      const { jobs } = await claim(other, { limit: 3 })
      assert.deepEqual(
        jobs.map(({ id, fence }) => [id, fence - c.fence]),
        [c.id, waiting[0]?.id, waiting[1]?.id].map((id) => [id, id === c.id ? 1 : 0]),
      )
      assert.equal(
        (await store.operations.stats({ queue: 'q' }))[0]?.counts.running,
        before + 3,
        'nothing was claimed twice',
      )
      assert.equal(lost.size, 0)
      // Without a doubt, the second word is stale.
      assert.deepEqual(await other.operations.complete({ queue: 'q', items: [{ ...a, result: null }] }), ['stale'])
    } finally {
      await other.close()
      forgetful.disconnect()
    }
  })
})
