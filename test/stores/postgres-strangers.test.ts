/** An application's open transaction holds what jobs need: nobody but those jobs waits for it, and they are told who holds it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { toMillpondError } from '../../src/stores/postgres/errors.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { dropSchema, newSchema, urlOf } from './postgres-fixture.ts'

interface Scene {
  pond: Millpond
  application: pg.Client
}

async function scene(body: (scene: Scene) => Promise<void>, timeout = 20_000): Promise<void> {
  const schema = newSchema()
  const pond = await Millpond.open(urlOf('postgres'), { schema, timeout })
  const application = new pg.Client({ connectionString: urlOf('postgres') })
  await application.connect()
  try {
    await application.query('begin')
    await body({ pond, application })
  } finally {
    await application.end()
    await pond.close({ timeout: 0 })
    await dropSchema(schema)
  }
}

describe('beside a transaction of the application', { skip: missingReason('postgres') }, () => {
  for (const { held, queue, options } of [
    { held: 'a key', queue: {}, options: { key: 'order:7' } },
    { held: 'the room of a queue', queue: { capacity: 100 }, options: {} },
  ])
    test(`that holds ${held}, other pushes of the same moment go through`, () =>
      scene(async ({ pond, application }) => {
        const orders = pond.queue<number>('orders', queue)
        const mails = pond.queue<number>('mails')
        await Promise.all([orders.push(0, { delay: '1h' }), mails.push(0)])
        const { id } = await orders.push(1, { ...options, tx: application })
        const settled: string[] = []
        const noted = (name: string, push: Promise<unknown>) => push.then(() => settled.push(name))
        const all: Promise<unknown>[] = []
        for (let round = 0; round < 3; round++) {
          all.push(noted('orders', orders.push(2, options)))
          for (let i = 0; i < 5; i++) all.push(noted('mails', mails.push(i)))
          all.push(noted('mails', mails.push(round, { key: `mail:${round}` })))
          await until(() => settled.length >= (round + 1) * 6, 'the mails are stored')
        }
        assert.deepEqual(new Set(settled), new Set(['mails']))
        await application.query('commit')
        await Promise.all(all)
        const pushed = await orders.push(2, options)
        assert.equal(pushed.existing, held === 'a key')
        if (pushed.existing) assert.equal(pushed.id, id)
        assert.equal((await mails.stats()).counts.waiting, 19)
      }))

  test('a push whose key is held until its deadline is StoreBusy, and tells who holds it', () =>
    scene(async ({ pond, application }) => {
      const orders = pond.queue<string>('orders')
      await orders.push('first')
      await orders.push('mine', { key: 'order:7', tx: application })
      const secret = "select 'a secret' as text"
      const { rows } = await application.query('select pg_backend_pid() as pid')
      await application.query(secret)
      await assert.rejects(orders.push('held', { key: 'order:7' }), (error) => {
        assert.ok(isMillpondError(error, 'StoreBusy') && error.retryable)
        assert.match(error.message, new RegExp(`process ${rows[0].pid} `))
        assert.match(error.message, /idle in transaction/)
        assert.doesNotMatch(error.message, /a secret/)
        return true
      })
      // Later ones go alone at once, and through as soon as they can.
      await assert.rejects(orders.push('held', { key: 'order:7' }), (error) => isMillpondError(error, 'StoreBusy'))
      await orders.push('other', { key: 'order:8' })
      const again = orders.push('held', { key: 'order:7' })
      await application.query('rollback')
      assert.equal((await again).existing, false)
      assert.equal((await orders.push('held', { key: 'order:7' })).existing, true)
    }, 2000))

  test('pushes of one key keep their order, whoever holds it meanwhile', () =>
    scene(async ({ pond, application }) => {
      const orders = pond.queue<number>('orders')
      await orders.push(0)
      await orders.push(1, { key: 'k', tx: application })
      const pushes = [2, 3, 4].map((n) => orders.push(n, { key: 'k' }))
      const other = await orders.push(5)
      await application.query('rollback')
      const answers = await Promise.all(pushes)
      assert.deepEqual(
        answers.map(({ existing }) => existing),
        [false, true, true],
      )
      assert.equal(new Set(answers.map(({ id }) => id)).size, 1)
      assert.notEqual(other.id, answers[0]?.id)
    }))
})

test('a call that reached its deadline blames no other transaction, whatever language the server speaks', () => {
  for (const said of ['canceling statement due to statement timeout', 'storniere Anfrage wegen Zeitüberschreitung']) {
    const { code, message } = toMillpondError(Object.assign(new Error(said), { code: '57014' }))
    assert.equal(code, 'StoreBusy')
    assert.match(message, /at its deadline/)
    assert.doesNotMatch(message, /another transaction/)
  }
  const held = toMillpondError(Object.assign(new Error('lock not available'), { code: '55P03' }))
  assert.match(held.message, /another transaction/)
})
