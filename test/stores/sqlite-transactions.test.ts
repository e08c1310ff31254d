/** The caller's transactions, and those of handlers. */
import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Store, StoreOptions, StoreTransactions } from '../../src/store.ts'
import { columnOf } from '../../src/stores/sqlite/connection/values.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { job, LIBRARIES, type Library, newPath, openAt } from './sqlite-fixture.ts'

interface Scene {
  path: string
  store: Store
  transactions: StoreTransactions
  /** Another connection to the same file, with a table of the application's. */
  db: Library
}

const orders = (db: Library): unknown => columnOf(db.prepare('select count(*) as n from orders').get(), 'n')
const waiting = async (store: Store): Promise<number> =>
  (await store.operations.stats({ queue: 'emails' }))[0]?.counts.waiting ?? 0

async function claimOne(store: Store): Promise<ClaimedJob> {
  await store.operations.push({ jobs: [job()] })
  const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 30_000 })
  const [claimed] = jobs
  assert.ok(claimed)
  return claimed
}

const done = ({ id, fence }: ClaimedJob) => ({ id, fence, result: null })

for (const { library, driver, connect, otherwise } of LIBRARIES) {
  async function scene(options: StoreOptions = {}): Promise<Scene> {
    const path = newPath()
    const store = await openAt(path, { ...options, driver })
    assert.ok(store.transactions)
    const db = connect(path)
    db.exec('create table orders (id integer primary key, note text unique) strict')
    return { path, store, transactions: store.transactions, db }
  }

  describe(`${library}: push in a caller's own transaction`, () => {
    test('the job is there when it commits, and not before', async () => {
      const { store, transactions, db } = await scene()
      db.exec('begin')
      db.exec(`insert into orders values (1, 'x')`)
      const one = job()
      assert.deepEqual(await transactions.push({ tx: db, jobs: [one] }), [{ status: 'pushed', id: one.id }])
      assert.deepEqual(await store.operations.find({ ids: [one.id] }), [null])
      db.exec('commit')
      assert.equal((await store.operations.find({ ids: [one.id] }))[0]?.state, 'waiting')
      assert.equal(await waiting(store), 1)
      db.close()
    })

    test('rolled back with everything else', async () => {
      const { store, transactions, db } = await scene()
      db.exec('begin')
      db.exec(`insert into orders values (1, 'x')`)
      const one = job()
      await transactions.push({ tx: db, jobs: [one] })
      db.exec('rollback')
      assert.deepEqual(await store.operations.find({ ids: [one.id] }), [null])
      assert.equal(await waiting(store), 0)
      assert.equal(orders(db), 0)
      db.close()
    })

    test('keys, ids and capacity hold there, too, over several pushes and transactions', async () => {
      const { store, transactions, db } = await scene()
      await store.operations.configure({ queue: 'emails', capacity: 2 })
      const keyed = job({ key: 'k' })
      for (let round = 0; round < 2; round++) {
        db.exec('begin')
        const statuses = []
        for (const jobs of [[keyed], [job({ key: 'k' }), job({ id: 'second' })], [job(), keyed]]) {
          statuses.push(...(await transactions.push({ tx: db, jobs })).map(({ status }) => status))
        }
        const first = round === 0 ? 'pushed' : 'existing'
        assert.deepEqual(statuses, [first, 'existing', first, 'full', 'existing'])
        db.exec('commit')
      }
      assert.equal(await waiting(store), 2)
      db.close()
    })

    test("an error undoes the push and leaves the caller's writes", async () => {
      const { store, transactions, db } = await scene()
      db.exec('begin')
      db.exec(`insert into orders values (1, 'x')`)
      await transactions.push({ tx: db, jobs: [job()] })
      await assert.rejects(transactions.push({ tx: db, jobs: [job({ id: 'beside' }), job({ priority: 1.5 })] }), {
        code: 'StoreFailed',
      })
      db.exec('commit')
      assert.equal(orders(db), 1)
      assert.deepEqual(await store.operations.find({ ids: ['beside'] }), [null])
      assert.equal(await waiting(store), 1)
      db.close()
    })

    test('a connection with settings of its own, by another path to the file', async () => {
      const { path, store, transactions } = await scene()
      symlinkSync(path, `${path}-link`)
      const db = otherwise(`${path}-link`)
      db.exec('begin')
      assert.equal((await transactions.push({ tx: db, jobs: [job()] }))[0]?.status, 'pushed')
      db.exec('commit')
      assert.equal(await waiting(store), 1)
      db.close()
    })

    test('what is no transaction on this file is refused', async () => {
      const { path, store, transactions, db } = await scene()
      const other = connect(newPath())
      const memory = connect(':memory:')
      const closed = connect(path)
      other.exec('begin')
      memory.exec('begin')
      closed.close()
      const refused: [unknown, RegExp][] = [
        [db, /begin one/],
        [other, /same file/],
        [memory, /in memory/],
        [async () => [], /neither/],
        [{ query() {} }, /neither/],
        ['begin', /neither/],
      ]
      for (const [tx, message] of refused) {
        await assert.rejects(transactions.push({ tx, jobs: [job()] }), { code: 'TransactionMismatch', message })
      }
      await assert.rejects(transactions.push({ tx: closed, jobs: [job()] }), { name: 'MillpondError' })
      assert.equal(await waiting(store), 0)
      for (const each of [db, other, memory]) each.close()
    })
  })

  describe(`${library}: a handler's transaction`, () => {
    test('its writes commit with the completion', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      assert.deepEqual(await tx.query('insert into orders values (?, ?) returning id', [1, 'a']), [{ id: 1 }])
      assert.deepEqual(await tx.query('select note from orders where id = ?', [1]), [{ note: 'a' }])
      assert.equal(orders(db), 0, 'nobody else sees it yet')
      assert.deepEqual(
        await tx.complete({
          queue: 'emails',
          items: [{ ...done(claimed), result: { encoding: 'json', body: '"ok"' } }],
        }),
        ['ok'],
      )
      assert.equal(orders(db), 1)
      const [record] = await store.operations.find({ ids: [claimed.id] })
      assert.equal(record?.state, 'done')
      assert.deepEqual(record.result, { encoding: 'json', body: '"ok"' })
      assert.equal((await store.operations.stats({}))[0]?.counts.done, 1)
      db.close()
    })

    test('a stale completion rolls them back', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      await store.operations.cancel({ ids: [claimed.id] })
      await tx.query(`insert into orders values (1, 'a')`)
      assert.deepEqual(await tx.complete({ queue: 'emails', items: [done(claimed)] }), ['stale'])
      assert.equal(orders(db), 0)
      assert.equal((await store.operations.find({ ids: [claimed.id] }))[0]?.state, 'cancelled')
      db.close()
    })

    test('rollback undoes them, and the job is still held', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      await tx.query(`insert into orders values (1, 'a')`)
      await tx.rollback()
      assert.equal(orders(db), 0)
      assert.deepEqual(await store.operations.release({ queue: 'emails', items: [claimed] }), ['ok'])
      db.close()
    })

    test('unused, it is an ordinary completion that waits for no other transaction', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      assert.deepEqual(await transactions.begin('q').complete({ queue: 'emails', items: [done(claimed)] }), ['ok'])
      assert.deepEqual(await transactions.begin('q').complete({ queue: 'emails', items: [done(claimed)] }), ['stale'])
      await transactions.begin('q').rollback()
      db.close()
    })

    test('jobs pushed with its query come with the commit, or not at all', async () => {
      const { store, transactions, db } = await scene()
      const [first, second] = [await claimOne(store), await claimOne(store)]
      const kept = transactions.begin('q')
      await transactions.push({ tx: kept.query, jobs: [job({ id: 'kept' })] })
      await assert.rejects(transactions.push({ tx: kept.query, jobs: [job({ id: 'beside' }), job({ priority: 1.5 })] }))
      assert.deepEqual(await kept.complete({ queue: 'emails', items: [done(first)] }), ['ok'])
      const undone = transactions.begin('q')
      await transactions.push({ tx: undone.query, jobs: [job({ id: 'undone' })] })
      await undone.rollback()
      const found = await store.operations.find({ ids: ['kept', 'beside', 'undone'] })
      assert.deepEqual(
        found.map((record) => record?.state),
        ['waiting', undefined, undefined],
      )
      assert.equal(await waiting(store), 1)
      await assert.rejects(transactions.push({ tx: undone.query, jobs: [job()] }), { code: 'TransactionMismatch' })
      await store.operations.release({ queue: 'emails', items: [second] })
      db.close()
    })

    test('other calls, and other transactions, wait for its end and then go on', async () => {
      const { store, transactions, db } = await scene()
      const [first, second] = [await claimOne(store), await claimOne(store)]
      const [one, other] = [transactions.begin('q'), transactions.begin('q')]
      await one.query(`insert into orders values (1, 'a')`)
      const order: string[] = []
      const pushed = store.operations.push({ jobs: [job()] }).then(() => order.push('push'))
      const queried = other.query('select count(*) as n from orders').then(([row]) => order.push(`saw ${row?.n}`))
      const extended = store.operations
        .extend({ queue: 'emails', lease: 60_000, items: [{ ...second, progress: null }] })
        .then(([o]) => order.push(`extend ${o}`))
      await one.query(`insert into orders values (2, 'b')`)
      assert.deepEqual(order, [])
      assert.deepEqual(await one.complete({ queue: 'emails', items: [done(first)] }), ['ok'])
      await Promise.all([pushed, queried])
      assert.deepEqual(order, ['push', 'saw 2'])
      await other.rollback()
      await extended
      assert.deepEqual(order, ['push', 'saw 2', 'extend ok'])
      db.close()
    })

    test('one that goes quiet is rolled back and can do nothing more', { timeout: 10_000 }, async () => {
      const { store, transactions, db } = await scene({ transactionTimeout: 40 })
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      await tx.query(`insert into orders values (1, 'a')`)
      // Waits for the end of the transaction, which only its rollback brings about.
      await store.operations.push({ jobs: [job()] })
      assert.equal(orders(db), 0)
      await assert.rejects(tx.query(`insert into orders values (2, 'b')`), {
        code: 'TransactionMismatch',
        message: /40 ms/,
      })
      await assert.rejects(tx.complete({ queue: 'emails', items: [done(claimed)] }), {
        code: 'TransactionMismatch',
        message: /40 ms/,
      })
      assert.equal((await store.operations.find({ ids: [claimed.id] }))[0]?.state, 'running')
      assert.equal(orders(db), 0)
      db.close()
    })

    test('a failing statement undoes only itself', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      await tx.query(`insert into orders values (1, 'a')`)
      await assert.rejects(tx.query(`insert into orders values (2, 'a')`), { code: 'StoreFailed', message: /UNIQUE/ })
      await assert.rejects(tx.query('select a from nowhere'), { code: 'StoreFailed', message: /nowhere/ })
      await tx.query('savepoint mine')
      await tx.query(`insert into orders values (3, 'c')`)
      await tx.query('rollback to mine')
      assert.deepEqual(await tx.complete({ queue: 'emails', items: [done(claimed)] }), ['ok'])
      assert.equal(orders(db), 1)
      db.close()
    })

    test('a statement that makes SQLite roll back ends it', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      await tx.query(`insert into orders values (1, 'a')`)
      await assert.rejects(tx.query(`insert or rollback into orders values (2, 'a')`), { code: 'StoreFailed' })
      await assert.rejects(tx.query(`insert into orders values (3, 'c')`), {
        code: 'TransactionMismatch',
        message: /rolled it back/,
      })
      await assert.rejects(tx.complete({ queue: 'emails', items: [done(claimed)] }), { code: 'TransactionMismatch' })
      assert.equal(orders(db), 0)
      assert.equal((await store.operations.find({ ids: [claimed.id] }))[0]?.state, 'running')
      db.close()
    })

    test('it cannot be ended from within, and nothing of a query is dropped', async () => {
      const { store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      for (const text of ['commit', ' -- now\n COMMIT', '/* x */;end', 'begin', 'rollback', 'rollback transaction']) {
        await assert.rejects(tx.query(text), { code: 'InvalidOption', message: /return to commit/ }, text)
      }
      const two = `insert into orders values (1, 'a'); insert into orders values (2, 'b')`
      await assert.rejects(tx.query(two), { code: 'InvalidOption', message: /one statement/ })
      await tx.query(`insert into orders values (3, 'c'); -- that is all`)
      await assert.rejects(tx.query('select 9007199254740993'), { code: 'StoreFailed', message: /too large/ })
      assert.deepEqual(await tx.query('select ? as bytes', [new Uint8Array([1, 2])]), [
        { bytes: new Uint8Array([1, 2]) },
      ])
      for (const value of [undefined, true, new Date(0), {}, () => {}]) {
        await assert.rejects(tx.query('select ?', [value]), { code: 'InvalidOption', message: /parameter 1/ })
      }
      assert.deepEqual(await tx.complete({ queue: 'emails', items: [done(claimed)] }), ['ok'])
      assert.equal(orders(db), 1)
      await assert.rejects(tx.query('select 1'), { code: 'TransactionMismatch', message: /has ended/ })
      db.close()
    })

    test('closing rolls back what is open', async () => {
      const { path, store, transactions, db } = await scene()
      const claimed = await claimOne(store)
      const tx = transactions.begin('q')
      await tx.query(`insert into orders values (1, 'a')`)
      const pushed = store.operations.push({ jobs: [job({ id: 'behind' })] })
      await store.close()
      assert.equal((await pushed)[0]?.status, 'pushed')
      await assert.rejects(tx.complete({ queue: 'emails', items: [done(claimed)] }), { code: 'Closed' })
      assert.equal(orders(db), 0)
      assert.equal((await (await openAt(path, { driver })).operations.find({ ids: ['behind'] }))[0]?.state, 'waiting')
      db.close()
    })
  })
}
