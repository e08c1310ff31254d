/** `millpond doctor` and `millpond migrate`: what is wrong is found, and what is well is not told of. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { Millpond } from '../../src/index.ts'
import type { Finding } from '../../src/stores/examination.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { server } from '../stores/postgres-fixture.ts'
import { clear, freshPrefix as rabbitPrefix } from '../stores/rabbitmq-fixture.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { millpond } from './fixture.ts'
import { ran } from './in-process.ts'
import { freshUrl, onStores } from './stores.ts'

async function doctor(url: string): Promise<{ code: unknown; found: Finding[] }> {
  const { code, out, err } = await ran(['doctor', '--json', '--store', url])
  assert.equal(err, '')
  const found = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  return { code, found }
}

const of = (found: readonly Finding[], check: string) => found.filter((one) => one.check === check)
const levels = (found: readonly Finding[], check: string) => of(found, check).map(({ level }) => level)

onStores('a store that is well, and queues that are not', async (_t, url, kind) => {
  const pond = await Millpond.open(url)
  const { found: before } = await doctor(url)
  // Servers of tests keep nothing on the disk.
  for (const check of ['version', 'tables', 'leases', 'clock', 'queues'] as const) {
    assert.ok(!levels(before, check).some((level) => level !== 'ok'), JSON.stringify(of(before, check)))
  }
  assert.deepEqual(levels(before, 'queues'), ['ok'])
  const queue = pond.queue('mails', { keep: { dead: 0 }, capacity: 2 })
  await queue.pushMany([1, 2])
  await queue.override({ lease: '5s' })
  await queue.pause()
  const { code, found } = await doctor(url)
  assert.equal(code, 3)
  for (const [check, level] of [
    ['noWorker', 'problem'],
    ['full', 'problem'],
    ['paused', 'warning'],
    ['queues', 'warning'],
    ['override', 'note'],
  ]) {
    assert.deepEqual(levels(found, check ?? ''), [level], `${kind}: ${check}`)
  }
  for (const { level, action, text } of found) {
    if (level === 'warning' || level === 'problem') assert.ok(action !== undefined && action !== '', text)
  }
  const told = (await ran(['doctor', '--store', url])).out
  assert.match(told, /^problem {2}full: mails: it is full: its capacity is 2\n +→ millpond limits mails --capacity N$/m)
  assert.doesNotMatch(told, /^ok/m)
  assert.match((await ran(['doctor', '--all', '--store', url])).out, /^ok /m)
  await pond.close()
})

onStores('migrate tells, makes, and then has nothing to do', async (_t, url, kind) => {
  const before = await ran(['migrate', '--dry-run', '--store', url])
  // Redis has nothing to make before the first queue.
  assert.equal(before.code, kind === 'redis' ? 0 : 3, before.err)
  const made = await ran(['migrate', '--store', url, '--json'])
  assert.deepEqual([made.code, JSON.parse(made.out).changed], [0, kind !== 'redis'])
  assert.match((await ran(['migrate', '--dry-run', '--store', url])).out, /^Up to date: version \d\.$/m)
  assert.equal((await doctor(url)).found.filter(({ check }) => check === 'version')[0]?.level, 'ok')
})

onStores('verbs that look refuse older tables, and change nothing in them', async (t, url, kind) => {
  if (kind === 'redis') return t.skip('it has no tables')
  const change = async (sql: string) => {
    if (kind === 'postgres') return server(sql.replace('META', `${new URL(url).searchParams.get('schema')}.meta`))
    const db = new DatabaseSync(url.slice('sqlite:'.length))
    db.exec(sql.replace('META', 'millpond_meta'))
    return db.close()
  }
  const none = await ran(['stats', '--store', url])
  assert.equal(none.code, 1)
  assert.match(none.err, kind === 'postgres' ? /StoreUnavailable: .* millpond migrate makes them/ : /no SQLite file/)
  assert.equal((await ran(['migrate', '--dry-run', '--store', url])).code, 3)
  const pond = await Millpond.open(url)
  await pond.queue('mails').push(1)
  await pond.close()
  await change(kind === 'postgres' ? 'update META set version = 1' : "update META set value = 1 where key = 'version'")
  const refused = async (args: string[]) => {
    const { code, err } = await ran(args)
    assert.deepEqual([code, /StoreVersion: .* version 1, .* millpond migrate brings/.test(err)], [1, true], err)
    assert.match((await ran(['migrate', '--dry-run', '--store', url])).out, /^Version 1 is there/)
  }
  for (const args of [
    ['stats'],
    ['explain', 'mails'],
    ['requeue', '--queue', 'mails', '--dry-run'],
    ['pause', 'mails'],
    ['push', 'mails', '1', '--dry-run'],
    ['push', 'mails', '1'],
    ['dashboard', '--port', '0'],
  ]) {
    await refused([...args, '--store', url])
  }
  const target = `sqlite:${join(scratch(t), 'target.db')}`
  await refused(['move', url, target, '--dry-run'])
  await refused(['stats', '--store', `memory:?spill=${encodeURIComponent(url)}`])
  const typo = await ran(['stats', '--store', `memory:?spill=${encodeURIComponent(target)}`])
  assert.match(typo.err, /there is no SQLite file/)
  assert.equal(existsSync(target.slice('sqlite:'.length)), false)
})

test('sqlite: a missing index, one that was changed, a stuck lease, sync=normal', async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  await pond.queue('mails').push(1)
  await pond.close()
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec("update millpond_jobs set state = 'running', lease_until = 5, started_at = 5")
  db.exec('drop index millpond_scheduled; drop index millpond_running')
  db.exec('create index millpond_running on millpond_jobs (queue)')
  db.close()
  const { code, found } = await doctor(`${url}?sync=normal`)
  assert.equal(code, 3)
  assert.match(of(found, 'tables')[0]?.text ?? '', /^missing: millpond_scheduled$/)
  assert.match(of(found, 'leases')[0]?.text ?? '', /^one running job has a lease that is long over/)
  assert.deepEqual(levels(found, 'durability'), ['warning'])
  assert.deepEqual(levels(found, 'integrity'), ['ok'])
})

test('sqlite: a file that is no database, and one without tables of Millpond', async (t) => {
  const path = join(scratch(t), 'jobs.db')
  writeFileSync(path, 'orders;customer\n'.repeat(1000))
  const text = await doctor(`sqlite:${path}`)
  assert.deepEqual([text.code, text.found.map(({ check, level }) => `${check} ${level}`)], [3, ['integrity problem']])
  assert.match(text.found[0]?.text ?? '', /not an SQLite database/)
  const other = join(scratch(t), 'other.db')
  const db = new DatabaseSync(other)
  db.exec('create table orders (id)')
  db.close()
  for (const file of [other, join(scratch(t), 'empty.db')]) {
    if (file !== other) writeFileSync(file, '')
    const { code, found } = await doctor(`sqlite:${file}`)
    assert.deepEqual([code, levels(found, 'version')], [3, ['problem']], file)
    assert.match(of(found, 'version')[0]?.action ?? '', /look at the path/)
  }
})

test('sqlite: a process with two libraries on the file', {
  skip: process.platform !== 'linux' && 'only Linux tells',
}, async (t) => {
  const url = freshUrl(t, 'sqlite')
  const pond = await Millpond.open(url)
  await pond.queue('mails').push(1)
  await pond.close()
  const path = url.slice('sqlite:'.length)
  /** Opens the file by node:sqlite, and by another library or the same one once more. */
  const opened = async (second: string) => {
    const program = `
      const { DatabaseSync } = require('node:sqlite')
      const Second = ${second}
      for (const db of [new DatabaseSync(process.argv[1]), new Second(process.argv[1])]) {
        globalThis[Math.random()] = db
        db.prepare('select count(*) from millpond_jobs').get()
      }
      console.log('open')
      process.stdin.resume()`
    const child = spawn(process.execPath, ['-e', program, path], { cwd: new URL('../../', import.meta.url) })
    after(t, () => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    return child
  }
  const two = await opened("require('better-sqlite3')")
  const { found } = await doctor(url)
  assert.deepEqual(levels(found, 'libraries'), ['problem'])
  assert.match(of(found, 'libraries')[0]?.text ?? '', new RegExp(`process ${two.pid} `))
  const closed = once(two, 'close')
  two.kill('SIGKILL')
  await closed
  await opened('DatabaseSync')
  assert.deepEqual(levels((await doctor(url)).found, 'libraries'), ['ok'])
})

test('redis: stuck leases, no append-only file, an evicting policy, more replicas wanted than there are', {
  skip: missingReason('redis'),
}, async (t) => {
  const url = freshUrl(t, 'redis')
  const pond = await Millpond.open(url)
  const queue = pond.queue('mails')
  await queue.push(1)
  const { found: calm } = await doctor(url)
  assert.deepEqual(levels(calm, 'leases'), ['ok'])
  const prefix = new URL(url).searchParams.get('prefix')
  const client = new Redis(serverUrl('redis') ?? '')
  after(t, () => client.disconnect())
  const running = `{${prefix}}:mails:running`
  await client.zadd(running, 5, Buffer.alloc(16, 7))
  const { found, code } = await doctor(`${url}&wait=1`)
  assert.equal(code, 3)
  assert.deepEqual(levels(found, 'leases'), ['problem'])
  assert.deepEqual(levels(found, 'replicas'), ['problem'])
  const isKept = /aof_enabled:1/.test(await client.info('persistence'))
  assert.deepEqual(levels(found, 'durability'), [isKept ? 'ok' : 'problem'])
  assert.deepEqual(levels(found, 'rights'), ['warning'])
  await client.zrem(running, Buffer.alloc(16, 7))
  await pond.close()
})

test('redis: a server that refuses writes, as a replica or after a snapshot that failed', {
  skip: missingReason('redis'),
}, async (t) => {
  const master = await startRedis({ appendonly: false })
  after(t, () => master.stop())
  const replica = await startRedis({ replicaOf: master })
  after(t, () => replica.stop())
  const pond = await Millpond.open(master.url)
  await pond.queue('mails').push(1)
  await pond.close()
  assert.deepEqual(levels((await doctor(master.url)).found, 'writes'), ['ok'])
  const { code, found } = await doctor(`${replica.url}?timeout=500`)
  assert.deepEqual([code, levels(found, 'writes')], [3, ['problem']])
  assert.match(of(found, 'writes')[0]?.text ?? '', /is a replica/)
  await master.command('config', 'set', 'save', '1 1')
  const [, folder = ''] = (await master.command('config', 'get', 'dir')).split('\n')
  const snapshot = join(folder.trim(), 'dump.rdb')
  rmSync(snapshot, { force: true })
  mkdirSync(join(snapshot, 'not-a-file'), { recursive: true })
  await master.command('bgsave')
  await until(async () => (await master.command('info', 'persistence')).includes('rdb_last_bgsave_status:err'))
  const full = await doctor(master.url)
  assert.deepEqual([full.code, levels(full.found, 'writes')], [3, ['problem']])
  assert.match(of(full.found, 'writes')[0]?.text ?? '', /MISCONF/)
})

async function withOneMail(t: TestContext) {
  const url = freshUrl(t, 'postgres')
  const schema = new URL(url).searchParams.get('schema') ?? ''
  const pond = await Millpond.open(url)
  await pond.queue('mails').push(1)
  await pond.close()
  return { url, schema }
}

test('postgres: a server that takes no writes, and a table without autovacuum', {
  skip: missingReason('postgres'),
}, async (t) => {
  const { url, schema } = await withOneMail(t)
  assert.deepEqual(levels((await doctor(url)).found, 'writes'), ['ok'])
  await server(`alter table ${schema}.moves set (autovacuum_enabled = off)`)
  const role = `${schema}_reader`
  await server(`create role ${role} login superuser`)
  after(t, () => server(`drop role ${role}`))
  await server(`alter role ${role} set default_transaction_read_only = on`)
  const reading = new URL(url)
  reading.username = role
  const { code, found } = await doctor(reading.href)
  assert.deepEqual([code, levels(found, 'writes')], [3, ['problem']])
  assert.match(
    of(found, 'bloat').find(({ level }) => level === 'problem')?.text ?? '',
    new RegExp(`autovacuum is off for ${schema}.moves`),
  )
})

test('postgres: a missing index, stuck leases, rights, a publication, a slot', {
  skip: missingReason('postgres'),
}, async (t) => {
  const { url, schema } = await withOneMail(t)
  await server(`drop index ${schema}.waiting_due`)
  await server(`create index waiting_new on ${schema}.waiting (attempt)`)
  await server(`update pg_index set indisvalid = false where indexrelid = '${schema}.waiting_new'::regclass`)
  const running = `jsonb_populate_record(null::${schema}.running, to_jsonb(m) || '{"lease_until": 5, "state": "running"}')`
  await server(`insert into ${schema}.running select (${running}).* from ${schema}.waiting m`)
  await server(`create role ${schema}_app`)
  after(t, () => server(`drop role ${schema}_app`))
  await server(`grant insert on ${schema}.waiting to ${schema}_app`)
  after(t, () => server(`drop owned by ${schema}_app`))
  await server(`create publication ${schema}_pub for table ${schema}.keys`)
  after(t, () => server(`drop publication ${schema}_pub`))
  const { found, code } = await doctor(url)
  assert.equal(code, 3)
  const texts = of(found, 'tables').map(({ text }) => text)
  assert.match(texts.join('\n'), /^missing: waiting_due$/m)
  assert.match(texts.join('\n'), /invalid: waiting_new$/m)
  assert.match(of(found, 'leases')[0]?.text ?? '', /^one running job has/)
  assert.match(
    of(found, 'rights').find(({ level }) => level === 'warning')?.text ?? '',
    new RegExp(`^${schema}_app may write`),
  )
  assert.match(of(found, 'publications')[0]?.text ?? '', new RegExp(`${schema}_pub has 1 tables`))
  assert.ok(
    levels(found, 'slots').length > 0 && levels(found, 'bloat').length > 0 && levels(found, 'transactions').length > 0,
  )
})

test('a store that cannot be reached, or is none', async () => {
  const away = await ran(['doctor', '--store', 'redis://127.0.0.1:1?timeout=100'])
  assert.deepEqual([away.code, /StoreUnavailable/.test(away.err)], [1, true])
  const memory = await ran(['doctor', '--store', 'memory:'])
  assert.deepEqual([memory.code, /only a store that lasts/.test(memory.err)], [2, true])
})

test('rabbitmq: its version and its user; what it lacks is refused with 3', {
  skip: missingReason('rabbitmq'),
}, async (t) => {
  const server = serverUrl('rabbitmq') ?? ''
  const prefix = rabbitPrefix()
  after(t, () => clear(server, prefix, ['mails'], false))
  const url = `${server}?prefix=${prefix}`
  const { code, found } = await doctor(url)
  assert.deepEqual([code, levels(found, 'version'), levels(found, 'rights')], [3, ['ok'], ['warning']])
  assert.match((await ran(['migrate', '--store', url])).out, /^Up to date/)
  const refused = await ran(['job', '00000000-0000-7000-8000-000000000000', '--store', url])
  assert.deepEqual([refused.code, /NotSupported/.test(refused.err)], [3, true])
  assert.equal((await ran(['push', 'mails', '1', '--new', '--store', url])).code, 0)
  const stats = await ran(['stats', 'mails', '--store', url])
  assert.match(stats.out, /^waiting +1$/m)
  assert.doesNotMatch(stats.out, /no worker/)
})

for (const kind of ['sqlite', 'redis', 'redis-cluster', 'postgres', 'rabbitmq'] as const) {
  test(`${kind}: as a process, which nothing but its own work keeps alive`, {
    skip: kind !== 'sqlite' && missingReason(kind),
  }, (t) => {
    const isShared = kind === 'rabbitmq' || kind === 'redis-cluster'
    const env = { MILLPOND_STORE: isShared ? (serverUrl(kind) ?? '') : freshUrl(t, kind) }
    assert.equal(millpond(['migrate'], env).code, 0)
    for (const [verb, told] of [
      ['doctor', /checks? (is|are) well\.\n$/],
      ['stats', /^(The store has no queues|queue +scheduled)/],
    ] as const) {
      const { code, out, err } = millpond([verb], env)
      assert.ok(code === 0 || code === 3, `${verb}: ${code} ${err}`)
      assert.match(out, told)
    }
  })
}
