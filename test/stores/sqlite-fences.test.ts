/**
 * Claims are undone by a power cut, and by a backup that is put back. Their fences are not given out once more, so a worker that still holds
 * one changes nothing.
 */
import assert from 'node:assert/strict'
import { copyFileSync, renameSync } from 'node:fs'
import { backup } from 'node:sqlite'
import { test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { type Database, openDatabase } from '../../src/stores/sqlite/connection/database.ts'
import { Fences } from '../../src/stores/sqlite/connection/fences.ts'
import { type Parameters, Statements } from '../../src/stores/sqlite/connection/statements.ts'
import type { Row } from '../../src/stores/sqlite/connection/values.ts'
import { connectTo, job, newPath, openAt } from './sqlite-fixture.ts'

const claim = async (store: Store) =>
  (await store.operations.claim({ queue: 'emails', worker: 'w', limit: 10, lease: 60_000 })).jobs

async function fenceOf(store: Store): Promise<number> {
  const [claimed] = await claim(store)
  assert.ok(claimed)
  return claimed.fence
}

/** Claims the job `old`, which is waiting, and gives it back. */
async function nextFence(store: Store): Promise<number> {
  const fence = await fenceOf(store)
  assert.deepEqual(await store.operations.release({ queue: 'emails', items: [{ id: 'old', fence }] }), ['ok'])
  return fence
}

/** As if the machine had been started anew since the file was last opened. */
function startAnew(path: string): void {
  const db = connectTo(path)
  const origin = db.prepare("select value from millpond_meta where key = 'origin'").get()?.value
  assert.match(String(origin), /^\S+ \d+:\d+ \d+$/, 'start of the machine, file, schema')
  const sql = `update millpond_meta set value = 'another' || substr(value, instr(value, ' ')) where key = 'origin'`
  assert.equal(db.prepare(sql).run().changes, 1)
  db.close()
}

test('the first to open the file after a start of the machine gives out fences above all before, the others the same', async () => {
  const path = newPath()
  // Its connection keeps the log there, as a crash does.
  const open = connectTo(path)
  const before = await openAt(path)
  open.prepare('select count(*) from millpond_jobs').get()
  await before.operations.push({ jobs: [job({ id: 'old' })] })
  assert.equal(await nextFence(before), 1)
  await before.close()

  const same = await openAt(path)
  assert.equal(await nextFence(same), 2)
  await same.close()

  startAnew(path)
  const [store, beside] = await Promise.all([openAt(path), openAt(path)])
  const first = await fenceOf(store)
  assert.ok(first > 100_000, String(first))
  assert.deepEqual(
    await store.operations.extend({ queue: 'emails', lease: 1000, items: [{ id: 'old', fence: 2, progress: null }] }),
    ['stale'],
  )
  // Pushed and claimed in one commit, which has a statement of its own; data that is no JSON is claimed by yet another.
  const [, [fresh]] = await Promise.all([beside.operations.push({ jobs: [job({ id: 'fresh' })] }), claim(beside)])
  assert.equal(fresh?.fence, first)
  await beside.operations.push({ jobs: [job({ id: 'bytes', data: { encoding: 'bytes', body: new Uint8Array(3) } })] })
  assert.equal((await claim(beside))[0]?.fence, first)
  await Promise.all([
    store.operations.release({ queue: 'emails', items: [{ id: 'old', fence: first }] }),
    beside.close(),
  ])
  assert.equal(await nextFence(store), first + 1)
  await store.close()

  // The clock was set back, so the time says nothing.
  open.exec(`update millpond_meta set value = 8e15 where key = 'fences'`)
  startAnew(path)
  const last = await openAt(path)
  assert.equal(await nextFence(last), 8e15 + 100_001)
  await last.close()
  open.close()
})

/** Calls `then` once, after the first look at the floor. */
class HeldStatements extends Statements {
  readonly #then: () => void
  #looked = false

  constructor(db: Database, then: () => void) {
    super(db)
    this.#then = then
  }

  override get(name: string, parameters?: Parameters): Row | undefined {
    const row = super.get(name, parameters)
    if (name === 'fences/floor' && !this.#looked) {
      this.#looked = true
      this.#then()
    }
    return row
  }
}

for (const origin of ['open', 'unknown'] as const) {
  for (const order of ['before the look', 'between look and lock', 'after the commit'] as const) {
    test(`two open the file (${origin}), one of them ${order} of the other: how often the floor rises`, async () => {
      const path = newPath()
      const keepsLog = connectTo(path)
      await (await openAt(path)).close()
      if (origin === 'open') startAnew(path)
      const [db, besides] = [openDatabase(path, null), openDatabase(path, null)]
      const beside = new Fences(new Statements(besides), path)
      const openBeside = () => beside.open(besides, 0, origin)
      const fences = new Fences(new HeldStatements(db, order === 'between look and lock' ? openBeside : () => {}), path)
      if (order === 'before the look') openBeside()
      fences.open(db, 0, origin)
      if (order === 'after the commit') openBeside()
      const floors = [fences.floor(), beside.floor()].sort((a, b) => a - b)
      assert.ok((floors[0] ?? 0) > 100_000)
      // Nobody can tell whether a backup was put back before the other one opened it.
      if (origin === 'open' || order === 'between look and lock') assert.equal(floors[0], floors[1])
      else assert.notEqual(floors[0], floors[1])
      for (const each of [db, besides, keepsLog]) each.close()
    })
  }
}

test('a client that has just opened the file, and has not raised the floor yet, does not keep another from raising it', async () => {
  const path = newPath()
  const copy = await backedUp(path)
  const store = await openAt(path)
  const stale = await fenceOf(store)
  await store.close()
  copyFileSync(copy, path)
  const opening = connectTo(path)
  opening.prepare('select count(*) from millpond_jobs').get()
  const beside = await openAt(path)
  await refusesStale(beside, stale)
  await beside.close()
  opening.close()
})

/** With the job `old` in it, of which a worker has lost sight by then. */
async function backedUp(path: string): Promise<string> {
  const store = await openAt(path)
  await store.operations.push({ jobs: [job({ id: 'old' })] })
  await nextFence(store)
  await store.close()
  const copy = newPath()
  copyFileSync(path, copy)
  return copy
}

/** A worker has claimed the job since the backup; the backup, put back, does not know of it. */
async function refusesStale(store: Store, stale: number): Promise<void> {
  const fence = await fenceOf(store)
  assert.ok(fence > stale, `${fence} is above ${stale}`)
  assert.deepEqual(
    await store.operations.complete({ queue: 'emails', items: [{ id: 'old', fence: stale, result: null }] }),
    ['stale'],
  )
  assert.deepEqual(await store.operations.complete({ queue: 'emails', items: [{ id: 'old', fence, result: null }] }), [
    'ok',
  ])
}

const puttingBack: Record<string, (copy: string, path: string) => void> = {
  'over the file': copyFileSync,
  'in its place': renameSync,
}
for (const [how, putBack] of Object.entries(puttingBack)) {
  test(`a backup is put back ${how} between two runs: a stale completion is refused`, async () => {
    const path = newPath()
    const copy = await backedUp(path)
    const store = await openAt(path)
    const stale = await fenceOf(store)
    await store.close()
    putBack(copy, path)
    const restored = await openAt(path)
    await refusesStale(restored, stale)
    await restored.close()
  })
}

test('programs that open the file every second stay behind the time: a backup from before them repeats no fence', async () => {
  const path = newPath()
  const copy = await backedUp(path)
  for (const file of [path, copy]) await (await openAt(file)).close()
  // As an hour of them leaves it, an hour ago.
  const HOUR = 3_600_000
  const db = connectTo(path)
  db.prepare(`update millpond_meta set value = ? where key = 'fences'`).run(
    (Date.now() - HOUR) * 1000 + 3_600 * 100_000,
  )
  db.close()
  const store = await openAt(path)
  const stale = await fenceOf(store)
  await store.close()
  const old = connectTo(copy)
  old.prepare(`update millpond_meta set value = ? where key = 'fences'`).run((Date.now() - HOUR) * 1000)
  old.close()
  renameSync(copy, path)
  const restored = await openAt(path)
  await refusesStale(restored, stale)
  await restored.close()
})

test('a backup is restored into the file while it is open, also by two processes: a stale completion is refused', async () => {
  const path = newPath()
  const copy = await backedUp(path)
  const [store, beside] = [await openAt(path), await openAt(path)]
  const stale = await fenceOf(store)
  const source = connectTo(copy)
  await backup(source, path)
  source.close()
  await refusesStale(store, stale)
  await beside.operations.push({ jobs: [job({ id: 'new' })] })
  assert.ok((await fenceOf(beside)) > stale)
  await Promise.all([store.close(), beside.close()])
})
