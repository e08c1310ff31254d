/** The PostgreSQL store on a connection that swallows everything and never ends by itself: no call waits for ever. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Bell } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { startProxy } from '../servers/proxy.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, dropSchema, job, newSchema, server, urlOf } from '../stores/postgres-fixture.ts'
import { until, untilCalm } from '../support/until.ts'

const unavailable = (error: unknown): boolean => {
  assert.ok(error instanceof MillpondError)
  assert.equal(error.code, 'StoreUnavailable')
  assert.equal(error.retryable, true)
  return true
}

/** Ms. A busy server answers sooner. */
const TIMEOUT = 1000

describe('a network that swallows everything', { skip: missingReason('postgres'), concurrency: true }, () => {
  for (const name of ['postgres', 'pgbouncer'] as const) {
    test(`${name}: all calls are rejected, and work again when it is back`, { skip: missingReason(name) }, async () => {
      const url = new URL(urlOf(name))
      const proxy = await startProxy(Number(url.port))
      url.host = `127.0.0.1:${proxy.port}`
      const schema = newSchema()
      // Laid down by the one with time enough for it.
      const other = await open(urlOf('postgres'), { schema })
      const store = await open(url, { schema, timeout: TIMEOUT })
      const transaction = store.transactions?.begin('q')
      try {
        const heard: Bell[] = []
        store.listen((bell) => heard.push(bell))
        await store.operations.push({ jobs: [job(), job()] })
        const [held] = await claimAll(store, 1)
        assert.ok(held)
        await transaction?.query('select 1')
        await proxy.blackhole()
        const completion = { id: held.id, fence: held.fence, result: null }
        await Promise.all([
          assert.rejects(async () => claimAll(store), unavailable),
          assert.rejects(async () => store.operations.push({ jobs: [job()] }), unavailable),
          assert.rejects(async () => store.operations.complete({ queue: 'emails', items: [completion] }), unavailable),
          assert.rejects(async () => store.operations.sweep({ limit: 10 }), unavailable),
          assert.rejects(async () => transaction?.query('select 2'), /Connection terminated/),
        ])
        await assert.rejects(async () => transaction?.complete({ queue: 'emails', items: [completion] }), unavailable)
        proxy.cut()
        await proxy.allow()
        await until(
          () =>
            claimAll(store).then(
              () => true,
              () => false,
            ),
          'calls to be answered',
        )
        await store.operations.complete({ queue: 'emails', items: [completion] })
        assert.equal((await store.operations.find({ ids: [held.id] }))[0]?.state, 'done')
        if (name === 'postgres') {
          await untilCalm(async () => {
            await claimAll(store)
            return (await server(`select 1 from ${schema}.sleepers`)).length === 1
          }, 'the sleeper')
        }
        heard.length = 0
        await other.operations.push({ jobs: [job()] })
        await until(() => heard.some(({ kind }) => kind === 'work'), 'a bell')
      } finally {
        // The store waits for it.
        await transaction?.rollback().catch(() => {})
        await Promise.all([store.close(), other.close()])
        await proxy.stop()
        await dropSchema(schema)
      }
    })
  }

  test('LISTEN is taken up anew where only its connection is silent', async () => {
    const url = new URL(urlOf('postgres'))
    const proxy = await startProxy(Number(url.port))
    url.host = `127.0.0.1:${proxy.port}`
    const schema = newSchema()
    await (await open(urlOf('postgres'), { schema })).close()
    const store = await open(url, { schema, timeout: TIMEOUT })
    try {
      store.listen(() => {})
      const listening = () => server(`select pid from pg_stat_activity where query ilike $1`, [`listen%${schema}%`])
      await until(async () => (await listening()).length === 1, 'LISTEN')
      const [before] = await listening()
      await proxy.blackhole()
      // Each takes as long as a look at the listening connection does, which comes at half that rate.
      for (let n = 0; n < 4; n++) await assert.rejects(claimAll(store), unavailable)
      await proxy.allow()
      await until(async () => (await listening()).some(({ pid }) => pid !== before?.pid), 'LISTEN anew')
    } finally {
      await store.close()
      await proxy.stop()
      await dropSchema(schema)
    }
  })
})
