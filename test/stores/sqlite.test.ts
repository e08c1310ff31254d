/** Opening, its errors, and what is in the file. */
import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { open } from '../../src/stores/sqlite/index.ts'
import { settingsOf } from '../../src/stores/sqlite/settings.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { connectTo, job, newPath, openAt, program } from './sqlite-fixture.ts'

const CONTRACT = new URL('../../contract/sqlite/', import.meta.url)

test('sqlite: a push of ids that another connection has stored, all of them and some', async () => {
  const path = newPath()
  const [one, other] = [await openAt(path), await openAt(path)]
  const [a, b, c, x, y] = [job(), job(), job(), job(), job()]
  await one.operations.push({ jobs: [a, b, c] })
  const outcomes = async (jobs: NewJob[]) => (await other.operations.push({ jobs })).map(({ status }) => status)
  assert.deepEqual(await outcomes([c, a]), ['existing', 'existing'])
  assert.deepEqual(await outcomes([a, x, c, y]), ['existing', 'pushed', 'existing', 'pushed'])
  assert.deepEqual(await outcomes([y, b, x]), ['existing', 'existing', 'existing'])
  await one.close()
  await other.close()
})

test('sqlite: a claim of JSON, of bytes and of long data, together and apart, in order of priority', async () => {
  const long = JSON.stringify('x'.repeat(70_000))
  const bodies: NewJob['data'][] = [
    { encoding: 'json', body: '{"n":"a\\u0000\\"\ud83d\ude00"}' },
    { encoding: 'json', body: long },
    { encoding: 'msgpack', body: new Uint8Array([0x93, 1, 2, 3]) },
    { encoding: 'bytes', body: new Uint8Array() },
  ]
  for (const chosen of [
    [0, 0],
    [0, 1],
    [2, 3],
    [0, 1, 2, 3],
  ]) {
    const store = await openAt(newPath())
    const jobs = chosen.map((at, index) => job({ priority: 9 - index, data: bodies[at] ?? job().data, group: 'g"' }))
    await store.operations.push({ jobs: jobs.toReversed() })
    const claimed = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 10, lease: 1000 })
    assert.deepEqual(
      claimed.jobs.map(({ id, priority, fence, attempt, attempts, group, key, timeout, data }) => {
        const body = typeof data.body === 'string' ? data.body : new Uint8Array(data.body)
        return { id, priority, fence, attempt, attempts, group, key, timeout, data: { ...data, body } }
      }),
      jobs.map(({ id, priority, attempts, group, data }) => ({
        ...{ id, priority, fence: 1, attempt: 1, attempts, group, key: null, timeout: null, data },
      })),
    )
  }
})

describe('sqlite: URL and options', () => {
  test('every form names the file that it should', () => {
    const forms: [string, string][] = [
      ['sqlite:app.db', resolve('app.db')],
      ['sqlite:./dir/app.db', resolve('dir/app.db')],
      ['sqlite:../app.db', resolve('../app.db')],
      ['sqlite:/abs/path.db', '/abs/path.db'],
      ['sqlite:///abs/path.db', '/abs/path.db'],
      ['SQLITE:app.db?sync=normal', resolve('app.db')],
      ['sqlite:my%20app%3F.db', resolve('my app?.db')],
      ['sqlite:%C3%A4.db', resolve('ä.db')],
      [pathToFileURL('/a b/c.db').href.replace('file:', 'sqlite:'), '/a b/c.db'],
    ]
    for (const [url, path] of forms) assert.equal(settingsOf(url, {}).path, path, url)
  })

  test('options come from the URL, and the code has the last word', () => {
    assert.deepEqual(settingsOf('sqlite:/a.db', {}), {
      path: '/a.db',
      sync: 'full',
      module: null,
      busyTimeout: 5000,
      transactionTimeout: 10_000,
    })
    assert.equal(settingsOf('sqlite:a.db?sync=normal', {}).sync, 'normal')
    assert.equal(settingsOf('sqlite:a.db?busyTimeout=7', {}).busyTimeout, 7)
    assert.equal(settingsOf('sqlite:a.db?sync=normal', { sync: 'full' }).sync, 'full')
    assert.equal(settingsOf('sqlite:a.db', { transactionTimeout: 20, clock: Date.now }).transactionTimeout, 20)
  })

  const refused: [string, Record<string, unknown>, RegExp][] = [
    ['sqlite::memory:', {}, /memory:/],
    ['sqlite:', {}, /no file/],
    ['sqlite:?sync=full', {}, /no file/],
    ['sqlite://host/app.db', {}, /host/],
    ['sqlite:a%zz.db', {}, /%25/],
    ['sqlite:a%00.db', {}, /NUL/],
    ['sqlite:a#b.db', {}, /%23/],
    ['file:a.db', {}, /sqlite:app\.db/],
    ['sqlite:a.db?sync=off', {}, /full.*normal/],
    ['sqlite:a.db', { sync: 1 }, /full.*normal/],
    ['sqlite:a.db?synch=full', {}, /sync, busyTimeout, transactionTimeout/],
    ['sqlite:a.db', { wal: true }, /sync, busyTimeout, transactionTimeout/],
    ['sqlite:a.db?busyTimeout=-1', {}, /busyTimeout/],
    ['sqlite:a.db', { busyTimeout: '5s' }, /busyTimeout/],
    ['sqlite:a.db', { transactionTimeout: 0 }, /transactionTimeout/],
  ]
  for (const [url, options, message] of refused) {
    test(`refuses ${url} ${JSON.stringify(options)}`, async () => {
      await assert.rejects(open(url, options), { code: 'InvalidOption', message })
    })
  }

  test('sync decides whether anybody waits for the log, also where the path is a link', {
    skip: process.platform !== 'linux',
  }, async () => {
    const logs = (path: string): number =>
      readdirSync('/proc/self/fd').filter((name) => {
        try {
          return readlinkSync(`/proc/self/fd/${name}`) === `${path}-wal`
        } catch {
          return false
        }
      }).length
    for (const [sync, descriptors] of [
      ['full', 2],
      ['normal', 1],
    ] as const) {
      const path = newPath()
      writeFileSync(path, '')
      const link = newPath()
      symlinkSync(path, link)
      const store = await open(`sqlite:${link}`, { sync })
      // SQLite's own, and the one that is synced.
      assert.equal(logs(realpathSync(path)), descriptors)
      await store.close()
      assert.equal(logs(realpathSync(path)), 0)
    }
  })
})

describe('sqlite: files that cannot be opened', () => {
  test('a missing folder is named', async () => {
    await assert.rejects(open(`sqlite:${newPath()}/app.db`, {}), {
      code: 'StoreUnavailable',
      message: /folder .*\.db does not exist/,
    })
  })

  test('a folder is no file', async () => {
    const path = newPath()
    mkdirSync(path)
    await assert.rejects(open(`sqlite:${path}`, {}), { code: 'StoreUnavailable', message: /is a folder/ })
  })

  test('no database', async () => {
    const path = newPath()
    writeFileSync(path, 'Dear diary, today I was not a database. '.repeat(100))
    await assert.rejects(open(`sqlite:${path}`, {}), { code: 'StoreCorrupt', message: /copy it/ })
    assert.match(readFileSync(path, 'utf8'), /^Dear diary/, 'the file is left as it was')
  })

  test('a damaged database', async () => {
    const path = newPath()
    const store = await openAt(path)
    await store.operations.push({ jobs: Array.from({ length: 200 }, () => job()) })
    await store.close()
    const bytes = readFileSync(path)
    // All pages but the first, which has the schema.
    bytes.fill(0xa5, 4096)
    writeFileSync(path, bytes)
    await assert.rejects(
      async () => {
        const damaged = await openAt(path)
        await damaged.operations.push({ jobs: [job()] })
      },
      { code: 'StoreCorrupt' },
    )
  })

  test('a newer version', async () => {
    const path = newPath()
    await (await openAt(path)).close()
    const db = connectTo(path)
    db.exec(`update millpond_meta set value = 999 where key = 'version'`)
    db.close()
    await assert.rejects(open(`sqlite:${path}`, {}), { code: 'StoreVersion', message: /999.*upgrade/ })
  })

  test('a file that is held', async () => {
    const path = newPath()
    const db = connectTo(path)
    db.exec('begin exclusive')
    await assert.rejects(open(`sqlite:${path}?busyTimeout=30`, {}), { code: 'StoreBusy' })
    db.exec('rollback')
    db.close()
    await (await openAt(path)).close()
  })

  test('a full disk: nothing of the call is stored, what was acknowledged is there, and it goes on once there is room', async () => {
    const path = newPath()
    // A limit on the size of files is what a test can set; the limit ends with the process.
    const printed = await program(
      `const store = await open(${JSON.stringify(`sqlite:${path}`)}, {})
      const body = JSON.stringify('x'.repeat(20_000))
      let stored = 0
      try {
        for (;;) { await store.operations.push({ jobs: [job('a' + stored, body), job('b' + stored, body)] }); stored++ }
      } catch (error) { console.log(error.code, error.retryable, stored) }`,
      'ulimit -f 4096',
    )
    const [code, retryable, stored] = printed.split(' ')
    assert.deepEqual([code, retryable], ['StoreFull', 'true'])
    assert.ok(Number(stored) > 0)
    const store = await openAt(path)
    const [stats] = await store.operations.stats({})
    assert.equal(stats?.counts.waiting, 2 * Number(stored))
    assert.deepEqual(
      (await store.operations.find({ ids: [`a${Number(stored) - 1}`, `b${stored}`] })).map((found) => found?.state),
      ['waiting', undefined],
    )
    assert.deepEqual(await store.operations.push({ jobs: [job({ id: 'more' })] }), [{ status: 'pushed', id: 'more' }])
  })
})

describe('sqlite: the file', () => {
  test('many threads and processes create it at once', async () => {
    const path = newPath()
    const url = JSON.stringify(`sqlite:${path}`)
    const others = [1, 2, 3].map((n) =>
      program(`const store = await open(${url}, {})
      console.log((await store.operations.push({ jobs: [job('process-${n}')] }))[0].status)
      await store.close()`),
    )
    const own = await Promise.all([openAt(path), openAt(path), openAt(path)])
    await Promise.all(own.map((store) => store.operations.push({ jobs: [job()] })))
    assert.deepEqual(await Promise.all(others), ['pushed', 'pushed', 'pushed'])
    const db = connectTo(path)
    assert.equal(db.prepare("select count from millpond_counts where name = 'waiting'").get()?.count, 6)
    assert.equal(db.prepare(`select value from millpond_meta where key = 'version'`).get()?.value, 5)
    db.close()
  })

  test('whoever comes second to the lock finds the tables made', async () => {
    // In most rounds, several see a file without tables before the first of them has made any.
    for (let round = 0; round < 8; round++) {
      const path = newPath()
      const opened = await Promise.all([openAt(path), openAt(path), openAt(path), openAt(path)])
      await Promise.all(opened.map((store) => store.close()))
    }
  })

  test("an application's own tables and user_version stay as they are", async () => {
    const path = newPath()
    const db = connectTo(path)
    db.exec(`create table users (id integer primary key); insert into users values (7); pragma user_version = 42`)
    await (await openAt(path)).operations.push({ jobs: [job()] })
    assert.equal(db.prepare('pragma user_version').get()?.user_version, 42)
    assert.equal(db.prepare('select id from users').get()?.id, 7)
    const tables = db.prepare(`select name from sqlite_schema where type = 'table' and name <> 'users'`).all()
    for (const { name } of tables) assert.match(String(name), /^millpond_/)
    db.close()
  })

  test('people can read it with plain SQL, also beside jobs with bytes and strange text', async () => {
    const path = newPath()
    const store = await openAt(path)
    await store.operations.push({ jobs: [job({ id: 'now', group: 'tenant-7' }), job({ id: 'later', delay: 60_000 })] })
    // The first bytes of the one are JSON to SQLite, those of the other are not.
    const bodies = [new Uint8Array([0x4c, 0x27, 0x74]), new Uint8Array([0xff])]
    const bytes = bodies.map((body) => job({ queue: 'bytes', data: { encoding: 'bytes', body } }))
    const nul = job({ queue: 'bytes', data: { encoding: 'json', body: '{"to":"\\u0000","\\u0000":1}' } })
    await store.operations.push({ jobs: [...bytes, nul] })
    const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w1', limit: 1, lease: 1000 })
    assert.equal(jobs[0]?.id, 'now')
    const db = connectTo(path)
    assert.deepEqual(
      db
        .prepare(
          `select id, state, "group", worker, data ->> 'to' as "to" from millpond_readable where queue = 'emails'`,
        )
        .all()
        .map((row) => ({ ...row })),
      [
        { id: 'now', state: 'running', group: 'tenant-7', worker: 'w1', to: 'a@example.org' },
        { id: 'later', state: 'scheduled', group: null, worker: null, to: 'a@example.org' },
      ],
    )
    assert.deepEqual(
      db
        .prepare(`select data ->> 'to' as "to" from millpond_readable where queue = 'bytes'`)
        .all()
        .map(({ to }) => to),
      [null, null, '\0'],
    )
    db.close()
  })

  test('the write-ahead log does not stay large, and is gone after closing', async () => {
    const path = newPath()
    const store = await openAt(path)
    const body = JSON.stringify('x'.repeat(10_000))
    for (let i = 0; i < 20; i++) {
      await store.operations.push({
        jobs: Array.from({ length: 500 }, () => job({ data: { encoding: 'json', body } })),
      })
    }
    await store.operations.push({ jobs: [job()] })
    const { size } = statSync(`${path}-wal`)
    assert.ok(size <= 64 * 1024 * 1024, `${size} bytes`)
    await store.close()
    assert.ok(!existsSync(`${path}-wal`))
  })

  test('no statement scans the jobs, and no list sorts them', async () => {
    const path = newPath()
    await openAt(path)
    const db = connectTo(path)
    const files = readdirSync(CONTRACT).filter((name) => name.endsWith('.sql'))
    // Tables of a connection's own, which other statements use.
    for (const file of files) {
      const [, ...parts] = readFileSync(new URL(file, CONTRACT), 'utf8').split(/^-- @statement .*/m)
      for (const part of parts) if (part.includes('create temp table')) db.exec(part)
    }
    let statements = 0
    for (const file of files) {
      const [head = '', ...parts] = readFileSync(new URL(file, CONTRACT), 'utf8').split(/^-- @statement /m)
      assert.match(
        head,
        new RegExp(`^-- ${file.replace('.sql', '')}: .*\n(?:.*\n)*-- In: `),
        `${file} says what goes in`,
      )
      assert.match(head, /^-- Out: /m, `${file} says what comes out`)
      for (const part of parts) {
        const name = part.slice(0, part.indexOf('\n'))
        const sql = part.slice(part.indexOf('\n'))
        if (/^\s*(savepoint|release|rollback)/m.test(sql)) continue
        statements++
        for (const { detail } of db.prepare(`explain query plan ${sql}`).all()) {
          // Runs once after another program has removed jobs.
          if (name === 'recount') continue
          assert.doesNotMatch(String(detail), /SCAN (millpond_jobs|job|dead|live)/, `${file} ${name}: ${detail}`)
          // Lines have no common order.
          if (/^(list|claim)/.test(file) && name !== 'lines')
            assert.doesNotMatch(String(detail), /TEMP B-TREE/, `${file} ${name}: ${detail}`)
        }
      }
    }
    assert.ok(statements > 30, `${statements} statements were found`)
    db.close()
  })

  test('bytes stay bytes, and the caller may reuse its buffer at once', async () => {
    const store = await openAt(newPath())
    const buffer = new Uint8Array(64).fill(1)
    const pushed = store.operations.push({
      jobs: [
        job({ id: 'view', data: { encoding: 'bytes', body: buffer.subarray(8, 11) } }),
        job({ id: 'empty', data: { encoding: 'bytes', body: new Uint8Array(0) } }),
      ],
    })
    buffer.fill(2)
    await pushed
    const found = await store.operations.find({ ids: ['view', 'empty'] })
    assert.deepEqual(
      found.map((record) => record?.data),
      [
        { encoding: 'bytes', body: new Uint8Array([1, 1, 1]) },
        { encoding: 'bytes', body: new Uint8Array(0) },
      ],
    )
    const empty = { encoding: 'bytes', body: new Uint8Array(0) } as const
    const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 2, lease: 10_000 })
    const [view] = jobs
    assert.ok(view)
    await store.operations.extend({ queue: 'emails', lease: 10_000, items: [{ ...view, progress: empty }] })
    await store.operations.complete({ queue: 'emails', items: [{ ...view, result: empty }] })
    const [record] = await store.operations.find({ ids: ['view'] })
    assert.deepEqual([record?.progress, record?.result], [empty, empty])
  })

  test('NODE_DEBUG=millpond tells which file is opened', async () => {
    const path = newPath()
    const code = `await (await open('sqlite:${basename(path)}', {})).close()`
    const opens = `opens ${realpathSync(dirname(path))}/${basename(path)} with node:sqlite, sync=full`
    assert.match(await program(code, `cd ${dirname(path)}; exec 2>&1; export NODE_DEBUG=millpond`), new RegExp(opens))
    assert.doesNotMatch(await program(code, `cd ${dirname(path)}; exec 2>&1`), /opens/)
  })

  test('a relative path is that of the working folder', async () => {
    const path = newPath()
    const name = path.slice(dirname(path).length + 1)
    const code = `process.chdir(${JSON.stringify(dirname(path))})
      const store = await open('sqlite:${name}', {})
      await store.close()`
    await program(code)
    assert.ok(existsSync(join(dirname(path), name)))
  })
})
