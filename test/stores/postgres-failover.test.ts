/** A standby and its promotion, restored copies, and pushes whose answers are lost on the way. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import pg from 'pg'
import { Millpond } from '../../src/index.ts'
import { Calls } from '../../src/stores/postgres/connection/calls.ts'
import type { Database } from '../../src/stores/postgres/connection/database.ts'
import { openLink } from '../../src/stores/postgres/connection/replica-link.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { startPostgres } from '../servers/postgres.ts'
import { caughtUp, startReplica } from '../servers/postgres-replica.ts'
import { run } from '../servers/run.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, job } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const unavailable = (error: unknown) => isMillpondError(error, 'StoreUnavailable')

describe('a standby', { skip }, () => {
  test('is unavailable to a store, takes over for a URL of both once it is promoted, and replicas write nothing there', async () => {
    const primary = await startPostgres()
    const standby = await startReplica(primary)
    const both = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`
    const first = await open(primary.url, {})
    const on = new pg.Pool({ connectionString: standby.url, max: 2 })
    // It goes away with the primary, as connections do.
    on.on('error', () => {})
    const store = await open(`${both}?target_session_attrs=read-write`, {})
    const link = openLink(standby.url, () => {})
    try {
      await store.operations.push({ jobs: [job()] })
      await caughtUp(primary, standby)
      await assert.rejects(
        open(standby.url, {}).then((opened) => opened.operations.push({ jobs: [job()] }).finally(() => opened.close())),
        unavailable,
      )
      // Its functions, one by one, as a store would meet them whose server was demoted.
      const demoted = await open(primary.url, {})
      await demoted.close()
      for (const call of [
        `claim('emails', 'w', 1)`,
        'sweep(1)',
        `push('emails', '1')`,
        `complete('emails', '{}', '{}')`,
      ]) {
        await assert.rejects(
          on.query(`select millpond.${call}`),
          (error: unknown) => {
            const code = error instanceof Error && 'code' in error ? error.code : ''
            return ['25006', '0A000', '55000'].includes(String(code))
          },
          call,
        )
      }
      await link.read('select 1', [])
      await primary.kill('SIGKILL')
      await standby.query('select pg_promote()')
      await until(async () => (await standby.query('select pg_is_in_recovery()')) === 'f', 'the end of recovery')
      await until(
        () =>
          store.operations.push({ jobs: [job({ queue: 'later' })] }).then(
            () => true,
            () => false,
          ),
        'a push on the new primary',
      )
      assert.deepEqual((await claimAll(store)).length, 1)
      await assert.rejects(link.read('create table written ()', []), { code: '25006' })
      await link.read('select 1', [])
    } finally {
      await Promise.all([store.close(), first.close(), link.end(), on.end()])
      await standby.stop()
      await primary.stop()
    }
  })

  test('several servers: bad values are refused by name', async () => {
    await assert.rejects(open('postgres://a,b/d?target_session_attrs=standby', {}), (error) => {
      return isMillpondError(error, 'InvalidOption') && /target_session_attrs/.test(error.message)
    })
    await assert.rejects(open('postgres://u:secret@127.0.0.1:1,127.0.0.1:2/d', {}), (error) => {
      return unavailable(error) && !/secret/.test(String(error))
    })
  })
})

describe('a restored copy', { skip }, () => {
  test('gives out no fence of the original, and is another store for transactions', async () => {
    const server = await startPostgres()
    const store = await open(server.url, {})
    const copyUrl = new URL(server.url)
    copyUrl.pathname = '/copy'
    try {
      await store.operations.push({ jobs: [job(), job(), job()] })
      const [held] = await claimAll(store, 1)
      assert.ok(held)
      await store.operations.release({ queue: 'emails', items: [held] })
      await server.query('create database copy')
      const dump = join(server.folder, 'copy.sql')
      await run(join(server.programs, 'pg_dump'), '--schema=millpond', '--file', dump, server.url)
      await run(join(server.programs, 'psql'), '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', dump, copyUrl.href)
      const client = new pg.Client(copyUrl.href)
      await client.connect()
      await client.query('begin')
      await assert.rejects(
        async () => store.transactions?.push({ tx: client, jobs: [job()] }),
        (error) => isMillpondError(error, 'TransactionMismatch'),
      )
      await client.end()
      const copy = await open(copyUrl, {})
      const fences = async (of: typeof store) => (await claimAll(of)).map(({ id, fence }) => `${id} ${fence}`)
      const [there, here] = [await fences(copy), await fences(store)]
      assert.equal(there.length, 3)
      assert.deepEqual(
        there.filter((fence) => here.includes(fence)),
        [],
      )
      // It is one store from now on, and the original stays what it was.
      const other = await open(copyUrl, {})
      assert.deepEqual(await other.operations.find({ ids: [held.id] }).then(([found]) => found?.state), 'running')
      await Promise.all([copy.close(), other.close()])
    } finally {
      await store.close()
      await server.stop()
    }
  })
})

describe('a call whose answer was lost', () => {
  const failure = (code: string) => Object.assign(new Error(code), { code })
  const never = () => Promise.reject(new Error('not of this test'))
  const callsOf = (call: Database['call']) =>
    new Calls({ call, run: never, begin: never, listen: never, pooled: never, end: never }, 'none', 15_000, undefined)

  test('is made again until there is one, whatever the server says meanwhile', async () => {
    const errors = ['ECONNRESET', '25006', '53300', '57P03', '28000', 'ECONNREFUSED', '53100', 'XX000']
    const sent: unknown[] = []
    const calls = callsOf(async (_, values) => {
      sent.push(...values)
      const code = errors.shift()
      if (code !== undefined) throw failure(code)
      return [['"stored"']]
    })
    assert.equal(
      await calls.repeatable(
        ['first'],
        () => ['again'],
        (values) => calls.answer('push($1)', values),
      ),
      'stored',
    )
    assert.deepEqual(sent, ['first', ...Array.from({ length: 8 }, () => 'again')])
  })

  test('is not made again where it was refused before anything was lost', async () => {
    let made = 0
    const calls = callsOf(async () => {
      made++
      throw failure('53300')
    })
    await assert.rejects(
      calls.repeatable(
        ['1'],
        () => ['2'],
        (values) => calls.answer('push($1)', values),
      ),
      unavailable,
    )
    assert.equal(made, 1)
  })
})

test('Millpond.open takes a URL of several servers', { skip }, async () => {
  const server = await startPostgres()
  try {
    const pond = await Millpond.open(`postgres://postgres@127.0.0.1:1,127.0.0.1:${server.port}/postgres`)
    await pond.queue('q').push(1)
    await pond.close()
  } finally {
    await server.stop()
  }
})
