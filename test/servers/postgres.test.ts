import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { Client } from 'pg'
import { untilCalm } from '../support/until.ts'
import { isAlive, started } from './fixtures.ts'
import { startPgBouncer } from './pgbouncer.ts'
import { startPostgres } from './postgres.ts'
import { caughtUp, setApplyDelay, startReplica } from './postgres-replica.ts'

test('PostgreSQL answers, keeps its data and its port through SIGKILL and restarts, and leaves nothing behind', async (t) => {
  const postgres = await started(t, () => startPostgres({ settings: { work_mem: '5MB', application_name: "it's" } }))
  if (postgres === undefined) return
  const settings = 'select name, setting from pg_settings where name = any($$'
  assert.equal(
    await postgres.query(
      `${settings}{fsync,synchronous_commit,full_page_writes,max_connections,work_mem}$$) order by 1`,
    ),
    'fsync|on\nfull_page_writes|on\nmax_connections|200\nsynchronous_commit|on\nwork_mem|5120',
  )
  assert.equal(await postgres.query('show listen_addresses'), '127.0.0.1')
  const { pid, port, folder } = postgres

  // Backends at work live on when their postmaster is killed, until they notice; the restart waits for them.
  await postgres.query('create table a as select 1 as i')
  const busy = Promise.allSettled(
    Array.from({ length: 3 }, () => postgres.query('select count(*) from generate_series(1, 3000000)')),
  )
  await untilCalm(
    async () => Number(await postgres.query("select count(*) from pg_stat_activity where query like '%series%'")) >= 3,
    'they are at work',
  )
  await postgres.kill('SIGKILL')
  assert.ok(!postgres.alive && !isAlive(pid))
  await postgres.restart()
  await busy
  assert.notEqual(postgres.pid, pid)
  assert.equal(postgres.port, port)
  assert.equal(await postgres.query('select i from a'), '1')

  const second = postgres.pid
  await postgres.query('update a set i = 2')
  await postgres.kill('SIGSTOP')
  await postgres.restart()
  assert.ok(!isAlive(second))
  assert.equal(await postgres.query('select i from a'), '2')

  await postgres.set('work_mem', '6MB')
  assert.equal(await postgres.query('show work_mem'), '6MB')

  await postgres.stop()
  assert.ok(!isAlive(postgres.pid))
  assert.ok(!existsSync(folder))
  await postgres.stop()
})

test('a replica shows commits when its delay is over, and sooner when that is lowered', async (t) => {
  const primary = await started(t, () => startPostgres())
  if (primary === undefined) return
  await primary.query('create table a (i int)')
  const replica = await startReplica(primary)
  t.after(() => replica.stop())
  const count = () => replica.query('select count(*) from a')
  assert.equal(await replica.query('select pg_is_in_recovery()'), 't')
  await primary.query('insert into a values (1)')
  await caughtUp(primary, replica)
  assert.equal(await count(), '1')

  await setApplyDelay(replica, 600_000)
  await primary.query('insert into a values (2)')
  const there = await primary.query('select pg_current_wal_lsn()')
  await untilCalm(
    async () => (await replica.query(`select pg_last_wal_receive_lsn() >= '${there}'`)) === 't',
    'the replica has received it',
  )
  assert.equal(await count(), '1')
  assert.equal(await replica.query(`select pg_last_wal_replay_lsn() < '${there}'`), 't')
  await setApplyDelay(replica, 0)
  await caughtUp(primary, replica)
  assert.equal(await count(), '2')

  // It keeps its delay, and finds a primary again that was away.
  await setApplyDelay(replica, 1)
  await replica.kill('SIGKILL')
  await primary.kill('SIGKILL')
  await primary.restart()
  await primary.query('insert into a values (3)')
  await replica.restart()
  await caughtUp(primary, replica)
  assert.equal(await count(), '3')
  assert.equal(await replica.query('show recovery_min_apply_delay'), '1ms')
})

test('PgBouncer pools transactions, for any role and database, and outlives its server', async (t) => {
  const postgres = await started(t, () => startPostgres())
  if (postgres === undefined) return
  const pgbouncer = await started(t, () => startPgBouncer(postgres.url, { poolSize: 1 }))
  if (pgbouncer === undefined) return
  await postgres.query('create role joe login')
  await postgres.query('create database other')
  const through = (role: string, database: string, ...statements: string[]) => {
    const url = new URL(pgbouncer.url)
    url.username = role
    url.pathname = database
    return postgres.queryAt(url.href, ...statements)
  }
  assert.equal(await through('joe', 'other', 'select current_user, current_database()'), 'joe|other')

  // One connection to the server, and it belongs to a client for no longer than its transaction takes.
  const [one, other] = [1, 2].map(() => new Client({ connectionString: pgbouncer.url, query_timeout: 20_000 }))
  assert.ok(one && other)
  t.after(() => Promise.allSettled([one.end(), other.end()]))
  for (const client of [one, other]) {
    client.on('error', () => {}) // the server is killed below
    await client.connect()
  }
  const backend = async (client: Client) => (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  await one.query('begin')
  const pid = await backend(one)
  await one.query('commit')
  assert.equal(await backend(other), pid)
  assert.equal(await backend(one), pid)

  await postgres.kill('SIGKILL')
  await postgres.restart()
  await untilCalm(async () => (await through('joe', 'other', 'select 1')) === '1', 'it reaches the server again')
  const { pid: before, port } = pgbouncer
  await pgbouncer.kill('SIGKILL')
  await assert.rejects(through('joe', 'other', 'select 1'), /refused/)
  await pgbouncer.restart()
  assert.notEqual(pgbouncer.pid, before)
  assert.equal(pgbouncer.port, port)
  assert.equal(await through('joe', 'other', 'select 1'), '1')
})
