/**
 * Two SQLite libraries in one process and one file: refused before they do harm, wherever that can be seen. One library, in the store's thread
 * and in the application's: sound, counted.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { type ErrorCode, Millpond } from '../../src/index.ts'
import { columnOf } from '../../src/stores/sqlite/connection/values.ts'
import { job, LIBRARIES, newPath, openAt, program } from './sqlite-fixture.ts'

const BETTER = import.meta.resolve('better-sqlite3')
const POND = new URL('../../src/index.ts', import.meta.url).href

/** Windows has no POSIX locks, and tells nobody which files a process has open. */
const unseen = process.platform === 'win32' && 'the system does not tell'

for (const { library, driver } of LIBRARIES) {
  const other = LIBRARIES.find((each) => each.library !== library)
  test(`${library}: tx of ${other?.library} is refused, before it reads the file`, async () => {
    const path = newPath()
    const store = await openAt(path, { driver })
    // On another file, as this test is not to damage its own.
    const tx = other?.connect(newPath())
    tx?.exec('begin')
    const refusal = { code: 'TransactionMismatch', message: /another SQLite library.*damage the file/ }
    await assert.rejects(async () => store.transactions?.push({ tx, jobs: [job()] }), refusal)
    tx?.close()
  })
}

test('the driver is the class of a loaded module, given in code', async () => {
  class Own extends Database {}
  const pond = await Millpond.open(`sqlite:${newPath()}`, { driver: Own })
  await pond.queue<number>('q').push(1)
  await pond.close()
  for (const driver of ['better-sqlite3', {}, class {}, null]) {
    const options = Object.fromEntries([['driver', driver]])
    await assert.rejects(Millpond.open(`sqlite:${newPath()}`, options), { code: 'InvalidOption', message: /driver/ })
  }
  await assert.rejects(Millpond.open(`sqlite:${newPath()}?driver=better-sqlite3`), { code: 'InvalidOption' })
})

const REFUSED: ErrorCode = 'SecondLibrary'

const begin = `import Database from ${JSON.stringify(BETTER)}
  const use = (path) => { const db = new Database(path); db.prepare('select count(*) from sqlite_schema').get(); return db }
  const codeOf = (promise) => promise.then(() => null, ({ code }) => code)\n`

/** What the application has written, as found by the next process. */
function numberIn(path: string): unknown {
  const db = LIBRARIES[0].connect(path)
  const number = columnOf(db.prepare('select n from mine').get(), 'n')
  db.close()
  return number
}

test('a file that another library has open is refused at open', { skip: unseen }, async () => {
  const url = `sqlite:${newPath()}`
  const code = `${begin}
    await (await open(${JSON.stringify(url)}, {})).close()
    const db = use(${JSON.stringify(url)}.slice(7))
    db.exec('create table mine (n)')
    const codes = new Set()
    // Several times, so that the threads of the first would have ended, and with them their connections.
    for (let n = 0; n < 4; n++) codes.add(await codeOf(open(${JSON.stringify(url)}, {})))
    console.log(...codes)
    // The application goes on. What it writes is not lost with a log that the store has removed.
    db.exec('insert into mine values (7)')
    process.kill(process.pid, 'SIGKILL')`
  await assert.rejects(program(code), { killed: false, stdout: `${REFUSED}\n` })
  assert.equal(numberIn(url.slice(7)), 7)
})

test('a library that opens the file later stops the store, and its close ends', { skip: unseen }, async () => {
  const path = newPath()
  const url = JSON.stringify(`sqlite:${path}`)
  const code = `${begin}
    const store = await open(${url}, {})
    await store.operations.push({ jobs: [job('before')] })
    const db = use(${url}.slice(7))
    db.exec('create table mine (n)')
    let code = null
    while (code === null) code = await codeOf(store.operations.push({ jobs: [job(crypto.randomUUID())] }))
    console.log(code, await codeOf(store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 1000 })))
    await store.close()
    // The application goes on here, too.
    db.exec('insert into mine values (7)')
    process.kill(process.pid, 'SIGKILL')`
  await assert.rejects(program(code), { killed: false, stdout: `${REFUSED} ${REFUSED}\n` })
  assert.equal(numberIn(path), 7)
})

for (const { library } of LIBRARIES) {
  test(`${library}: the application opens and closes the file beside the store, in two processes: all jobs are there`, async () => {
    const path = newPath()
    const imports = `import { Millpond } from ${JSON.stringify(POND)}
      import { DatabaseSync } from 'node:sqlite'
      import Database from ${JSON.stringify(BETTER)}\n`
    const isNode = library === 'sqlite'
    const code = `${imports}
      const path = ${JSON.stringify(path)}
      const pond = await Millpond.open('sqlite:' + path, ${isNode ? '{}' : '{ driver: Database }'})
      const queue = pond.queue('emails')
      for (let round = 0; round < 150; round++) {
        const db = new ${isNode ? 'DatabaseSync' : 'Database'}(path, { timeout: 5000 })
        db.exec('begin immediate')
        await queue.push(round, { tx: db })
        db.exec('commit')
        const pushing = queue.pushMany([1, 2, 3])
        db.prepare('select count(*) from millpond_jobs').get()
        db.close()
        await pushing
      }
      await pond.close()`
    await Promise.all([program(code), program(code)])
    const db = LIBRARIES[0].connect(path)
    assert.equal(columnOf(db.prepare('select count(*) as n from millpond_jobs').get(), 'n'), 2 * 150 * 4)
    assert.equal(columnOf(db.prepare('pragma integrity_check').get(), 'integrity_check'), 'ok')
    db.close()
  })
}

/** As docs/sqlite.md shows them. */
test('Kysely and Drizzle on better-sqlite3: a push in their transaction commits with it, or not at all', async () => {
  const path = newPath()
  const pond = await Millpond.open(`sqlite:${path}`, { driver: Database })
  const emails = pond.queue<{ to: string }>('emails')
  const sqlite = new Database(path)
  sqlite.exec('create table users (name text not null unique)')
  const kysely = new Kysely<{ users: { name: string } }>({ dialect: new SqliteDialect({ database: sqlite }) })
  await kysely.transaction().execute(async (trx) => {
    await trx.insertInto('users').values({ name: 'Ada' }).execute()
    await emails.push({ to: 'ada@example.org' }, { tx: sqlite })
  })
  const twice = kysely.transaction().execute(async (trx) => {
    await emails.push({ to: 'nobody@example.org' }, { tx: sqlite })
    await trx.insertInto('users').values({ name: 'Ada' }).execute()
  })
  await assert.rejects(twice, /UNIQUE/)
  assert.equal((await emails.stats()).counts.waiting, 1)

  const db = drizzle({ client: sqlite })
  db.run(sql`begin immediate`)
  db.run(sql`insert into users values ('Grace')`)
  await emails.push({ to: 'grace@example.org' }, { tx: sqlite })
  db.run(sql`commit`)
  db.run(sql`begin immediate`)
  await emails.push({ to: 'nobody@example.org' }, { tx: sqlite })
  db.run(sql`rollback`)
  assert.equal((await emails.stats()).counts.waiting, 2)
  assert.deepEqual(sqlite.prepare('select name from users').all(), [{ name: 'Ada' }, { name: 'Grace' }])
  await pond.close()
  sqlite.close()
})
