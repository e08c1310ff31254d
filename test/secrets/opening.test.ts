/** Opening stores and caches with URLs, passwords and options that are wrong: no error, warning or log shows what is secret in them. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { Cache } from '../../src/cache/index.ts'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { serve } from '../../src/serve/index.ts'
import { started } from '../servers/fixtures.ts'
import { startPostgres } from '../servers/postgres.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { assertClean, assertSeen, CANARY, fails, written } from './canary.ts'

/** What a caller without types may pass. */
function anything<T>(value: unknown): T {
  // The one cast of these tests: what is passed is wrong on purpose.
  return value as T
}

/** Passwords as people write them into URLs. */
const PASSWORDS = [
  CANARY,
  `${CANARY}/x`,
  `x/${CANARY}`,
  `12/${CANARY}`,
  `12?${CANARY}`,
  `12?a=b&${CANARY}`,
  `12#${CANARY}`,
  `x@${CANARY}`,
  `${CANARY}@12/x`,
  `x@12/${CANARY}`,
  `x,${CANARY}`,
  `x@y,${CANARY}`,
  `${CANARY}%`,
  `${CANARY}%zz`,
  `${CANARY}%ff`,
  `[${CANARY}`,
  `${CANARY} x`,
  `${CANARY}\\x`,
  `${CANARY}:1`,
]
/** Nobody listens at the first, nobody is called the second, and no port has the third's number. */
const HOSTS = ['127.0.0.1:1', 'nowhere.invalid', '127.0.0.1:99999', '', '127.0.0.1:1,127.0.0.1:2']
const SHORT = { timeout: 100 }

const urls = (scheme: string, hosts = HOSTS): string[] =>
  PASSWORDS.flatMap((password) =>
    hosts.flatMap((host) => [`${scheme}://user:${password}@${host}`, `${scheme}://:${password}@${host}/0`]),
  )

describe('the walk', () => {
  test('finds the canary wherever it is', () => {
    const hidden = new Error('x')
    Object.defineProperty(hidden, 'query', { value: CANARY, enumerable: false })
    const bytes = Buffer.from(`a${CANARY}`)
    for (const seen of [CANARY, hidden, { [CANARY]: 1 }, new Error('x', { cause: { args: [CANARY] } })])
      assertSeen(seen)
    for (const seen of [bytes, new Uint8Array(bytes), bytes.toString('base64'), bytes.toString('hex')]) assertSeen(seen)
    assertSeen(JSON.stringify(bytes))
    assertSeen(new Error('x', { cause: { args: [Buffer.from(`${' '.repeat(1000)}${CANARY}`)] } }))
    assertClean(new Error('clean'), 'it')
  })
})

describe('opening', () => {
  test('URLs of every scheme and of none', async () => {
    const given = [`${CANARY}`, `${CANARY}@host`, `:${CANARY}@host`, `u:${CANARY}@host`, ` redis://u:${CANARY}@host`]
    for (const scheme of ['mysql', 'memory', 'sqlite', 'amqp', 'http'])
      given.push(`${scheme}://u:${CANARY}@host/${CANARY}`)
    given.push(
      `memory:?${CANARY}@h`,
      `memory:${CANARY}`,
      `sqlite:?${CANARY}@h`,
      `sqlite:/tmp/%zz${CANARY}`,
      `sqlite:a#${CANARY}`,
    )
    for (const url of given) {
      await fails(`Millpond.open ${url}`, () => Millpond.open(url))
      await fails(`serve ${url}`, () => serve(url))
      if (!url.startsWith('memory')) await fails(`Cache.open ${url}`, () => Cache.open(url))
    }
    await fails('Cache.open postgres', () => Cache.open(`postgres://u:${CANARY}@host`))
    for (const odd of [{ url: CANARY }, [`redis://u:${CANARY}@h`], new Error(CANARY), Symbol(CANARY)]) {
      await fails('Millpond.open of no text', () => Millpond.open(anything(odd)))
      if (typeof odd !== 'symbol') await fails('Cache.open of no text', () => Cache.open(anything(odd)))
    }
  })

  for (const scheme of ['redis', 'rediss']) {
    test(`${scheme}: passwords, hosts and ports`, { timeout: 120_000 }, async () => {
      // All at once, since most wait for their time-out.
      await Promise.all(
        urls(scheme).map(async (url) => {
          const error = await Millpond.open(url, SHORT).then(
            () => assert.fail(url),
            (thrown: unknown) => thrown,
          )
          assertClean(error, url)
          assert.ok(isMillpondError(error), `${url}: a bare ${inspect(error)}`)
          const cached = await Cache.open(url, SHORT).then(
            () => assert.fail(url),
            (thrown: unknown) => thrown,
          )
          assertClean(cached, url)
          assert.ok(isMillpondError(cached), `${url}: a bare ${inspect(cached)}`)
        }),
      )
    })
  }

  test('a password that is not escaped is the caller’s mistake, and the error says how to write it', async () => {
    for (const password of ['x/y', '12/x', '12?x', '12#x', 'x@12/y', '%', '%zz', '%ff']) {
      for (const open of [Millpond.open, Cache.open]) {
        const error = await fails(password, () => open(`redis://user:${password}@127.0.0.1:1`))
        assert.ok(isMillpondError(error, 'InvalidOption') && /%2F/.test(error.message), password)
      }
      if (password.startsWith('%') && password !== '%ff') continue
      const error = await fails(password, () => Millpond.open(`postgres://user:${password}@127.0.0.1:1/db`))
      assert.ok(isMillpondError(error, 'InvalidOption') && /%2F/.test(error.message), password)
    }
    // With an @ the last one counts, as in any URL; with a bare % PostgreSQL's client takes it for itself.
    for (const url of [
      'redis://:x@y@127.0.0.1:1',
      'postgres://u:x@y@127.0.0.1:1/db',
      'postgres://u:100%@127.0.0.1:1/db',
    ]) {
      const error = await fails(url, () => Millpond.open(url, SHORT))
      assert.ok(isMillpondError(error, 'StoreUnavailable'), inspect(error))
    }
  })

  test('postgres: passwords, hosts and ports', { timeout: 120_000 }, async () => {
    const databases = ['', '/db', '/db?sslmode=require', '/db?connections=1', '/db?sslrootcert=/nowhere']
    const hosts = HOSTS.slice(0, 4).flatMap((host) => databases.map((database) => `${host}${database}`))
    await Promise.all(
      urls('postgres', hosts).map(async (url) => {
        const error = await Millpond.open(url, SHORT).then(
          () => assert.fail(url),
          (thrown: unknown) => thrown,
        )
        assertClean(error, url)
        assert.ok(isMillpondError(error), `${url}: a bare ${inspect(error)}`)
      }),
    )
  })

  test('options', async () => {
    const secret = `redis://u:${CANARY}@h`
    for (const url of ['memory:', 'sqlite:/tmp/none.db', 'redis://127.0.0.1:1', 'postgres://127.0.0.1:1/db']) {
      const wrong: unknown[] = [
        CANARY,
        [CANARY],
        { client: secret },
        { client: { password: CANARY } },
        { prefix: secret },
      ]
      wrong.push(
        { [`${CANARY}@`]: 1 },
        { password: CANARY },
        { schema: secret },
        { listen: secret },
        { timeout: secret },
      )
      wrong.push(
        { maxPayload: secret },
        { signals: secret },
        { busyTimeout: secret },
        { cluster: secret },
        { sync: secret },
      )
      for (const options of wrong) {
        await fails(`options of ${url}`, () => Millpond.open(url, anything(options)))
        if (url.startsWith('redis')) await fails(`options of a cache`, () => Cache.open(url, anything(options)))
      }
    }
    for (const options of [
      { tokens: CANARY },
      { tokens: [CANARY] },
      { tokens: [`${CANARY} with a space in it`] },
      { [`${CANARY}@`]: 1 },
    ])
      await fails('options of serve', () => serve('memory:', anything(options)))
  })

  for (const scheme of ['redis+sentinel', 'rediss+sentinel']) {
    test(`${scheme}: passwords of servers and sentinels, hosts and ports`, { timeout: 120_000 }, async () => {
      const given = urls(scheme).flatMap((url) => [url, `${url}/mymaster?sentinelPassword=${CANARY}`])
      given.push(`${scheme}://127.0.0.1:1/mymaster?sentinelPassword=${CANARY}&sentinelUsername=${CANARY}`)
      const opened = await Promise.allSettled(given.map((url) => Millpond.open(url, SHORT)))
      for (const [i, url] of given.entries()) {
        const one = opened[i]
        assert.ok(one?.status === 'rejected' && isMillpondError(one.reason), url)
        assertClean(one.reason, url)
      }
      const odd = [CANARY.length, { [CANARY]: CANARY }]
      for (const sentinelPassword of odd)
        await fails('sentinelPassword', () =>
          Millpond.open(`${scheme}://127.0.0.1:1/mymaster`, anything({ sentinelPassword })),
        )
    })
  }

  test('a Redis server that refuses the password', { skip: missingReason('redis') }, async (t) => {
    const redis = await started(t, () => startRedis({ args: ['--requirepass', `${CANARY}Right`] }))
    if (redis === undefined) return
    const at = (login: string, scheme = 'redis') => redis.url.replace('redis://', `${scheme}://${login}@`)
    for (const url of [
      redis.url,
      at(`:${CANARY}`),
      at(`user:${CANARY}`),
      at(`:${CANARY}`, 'rediss'),
      `${at(`:${CANARY}`)}?cluster=true`,
    ]) {
      await fails(`Millpond.open ${url}`, () => Millpond.open(url, { timeout: 500 }))
      await fails(`Cache.open ${url}`, () => Cache.open(url, { timeout: 500 }))
    }
    // Neither does what was opened rightly.
    const { lines } = await written(async () => {
      await using pond = await Millpond.open(at(`:${CANARY}Right`))
      await using cache = await Cache.open(at(`:${CANARY}Right`))
      const queue = pond.queue('q')
      await using worker = queue.work(() => {})
      for (const each of [pond, cache, queue, worker]) assertClean(each, each.constructor.name)
    })
    for (const line of lines) assertClean(line, 'stderr')
  })

  test('a Redis server that knows no passwords', { skip: missingReason('redis') }, async () => {
    const url = (serverUrl('redis') ?? '').replace('//', `//nobody:${CANARY}@`)
    await fails('Millpond.open', () => Millpond.open(url, { timeout: 500 }))
    await fails('Cache.open', () => Cache.open(url, { timeout: 500 }))
  })

  test('a PostgreSQL server that refuses the password, and replicas', {
    skip: missingReason('postgres'),
  }, async (t) => {
    const postgres = await started(t, () => startPostgres())
    if (postgres === undefined) return
    const file = await postgres.query('show hba_file')
    writeFileSync(file, 'host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n')
    await postgres.query(`create role locked login password '${CANARY}Right'`, 'select pg_reload_conf()')
    const at = (login: string, database = 'postgres') => `postgres://${login}@127.0.0.1:${postgres.port}/${database}`
    const wrong = [at(`locked:${CANARY}`), at('locked'), at(`nobody:${CANARY}`), at(`locked:${CANARY}`, 'none')]
    wrong.push(
      at(`postgres:${CANARY}`, 'none'),
      `${at(`locked:${CANARY}`)}?sslmode=require`,
      `${at(`locked:${CANARY}`)}?sslmode=verify-full`,
    )
    // A role that may log in, and make no schema.
    wrong.push(at(`locked:${CANARY}Right`))
    for (const url of wrong) await fails(`Millpond.open ${url}`, () => Millpond.open(url, { timeout: 2000 }))

    await using pond = await Millpond.open(at(`postgres:${CANARY}`))
    assertClean(pond, 'a pond')
    const queue = pond.queue('q')
    for (const replica of [`redis://u:${CANARY}@h`, { password: CANARY }, CANARY, at(`u:12/${CANARY}`)])
      await fails('work with a replica', () => queue.work(() => {}, { replica }))
    for (const replica of [at(`locked:${CANARY}`), `postgres://u:${CANARY}@127.0.0.1:1/db`]) {
      const told = Promise.withResolvers<unknown>()
      const stop = pond.on('error', told.resolve)
      const { lines } = await written(async () => {
        await using _worker = queue.work(() => {}, { replica })
        const { id } = await queue.push(1)
        await pond.result(id)
        assertClean(await told.promise, `replica ${replica}`)
      })
      for (const line of lines) assertClean(line, 'stderr')
      stop()
    }
  })
})
