/**
 * The disk is full. Pushes are refused with StoreFull and nothing of them is stored; what was acknowledged before is there;
 * what a worker could not write is written once there is room. Nobody has to restart anything.
 */

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type Duration, isMillpondError, Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { fill, noDisk, pushUntilFull, smallDisk, withEffects } from './disk.ts'
import { countsOf, faultsOf, liveIn, look, settles, start } from './harness.ts'
import type { FillerConfig } from './roles/filler.ts'

const QUEUE = 'jobs'
/** A lease that outlives the shortage: nobody else gets a job meanwhile, and even plain handlers run once each. */
const LONG = '5m'
const idsIn = (path: string) => look(path, 'select id from millpond_jobs order by id').map(({ id }) => String(id))

test('pushes fill the disk: StoreFull, nothing lost, and on they go once there is room', {
  skip: noDisk,
}, async (t) => {
  const disk = smallDisk(t)
  if (disk === undefined) return
  const path = join(disk.path, 'app.db')
  const pond = await Millpond.open(`sqlite:${path}`)
  after(t, () => pond.close())
  const { ids, codes } = await pushUntilFull(pond, QUEUE)
  assert.deepEqual(codes, new Set(['StoreFull']))
  assert.ok(ids.length > 0)
  // Reading goes on, and finds what was acknowledged, no more and no less.
  assert.deepEqual(idsIn(path), ids.toSorted())
  for (const id of ids) assert.equal((await pond.job(id))?.state, 'waiting')
  assert.deepEqual(faultsOf(path), [])
  await assert.rejects(pond.queue<string>(QUEUE).push('x'.repeat(50_000)), (error) => {
    assert.ok(isMillpondError(error, 'StoreFull'))
    assert.equal(error.retryable, true)
    assert.match(error.message, /no room to write/)
    return true
  })

  disk.free()
  const jobs = pond.queue<string>(QUEUE)
  const more = await jobs.pushMany(Array.from({ length: 30 }, () => 'y'.repeat(1000)))
  await pond.close()
  const again = await Millpond.open(`sqlite:${path}`)
  after(t, () => again.close())
  assert.deepEqual(idsIn(path), [...ids, ...more.map(({ id }) => id)].sort())
  again.queue<string>(QUEUE).work(() => {})
  await until(() => liveIn(path, QUEUE) === 0, 'all is done')
  assert.deepEqual(faultsOf(path), [])
  const { kept, real } = countsOf(path, QUEUE)
  assert.deepEqual(kept, real)
  assert.equal(real.done, ids.length + more.length)
})

test('a process that ends while the disk is full leaves a sound file with all in it', { skip: noDisk }, async (t) => {
  const disk = smallDisk(t)
  if (disk === undefined) return
  const path = join(disk.path, 'app.db')
  const pond = await Millpond.open(`sqlite:${path}`)
  const { ids } = await pushUntilFull(pond, QUEUE)
  fill(disk)
  // Closing means to bring the write-ahead log into the database, for which there is no room.
  await settles('close', pond.close())
  disk.free()
  assert.deepEqual(idsIn(path), ids.toSorted())
  assert.deepEqual(faultsOf(path), [])
})

test('jobs that come and go find room on a small disk, however many they are, also where another connection fills the log', {
  skip: noDisk,
}, async (t) => {
  const disk = smallDisk(t, 12 << 20, 0)
  if (disk === undefined) return
  const path = join(disk.path, 'app.db')
  withEffects(path)
  const pond = await Millpond.open(`sqlite:${path}`)
  after(t, () => pond.close())
  const jobs = pond.queue<string>(QUEUE, { keep: { done: 0 } })
  jobs.work(() => {}, { concurrency: 50 })
  // Five times what the disk holds.
  for (let round = 0; round < 60; round++) {
    const pushed = await jobs.pushMany(Array.from({ length: 100 }, () => 'x'.repeat(10_000)))
    await until(() => liveIn(path, QUEUE) === 0, 'they are done')
    assert.equal(pushed.length, 100)
  }

  const other = new DatabaseSync(path)
  other.exec(`pragma busy_timeout = 5000; pragma wal_autocheckpoint = 0; insert into effects values ('')`)
  const fills = other.prepare('update effects set id = ?')
  assert.throws(() => {
    for (let n = 0; ; n++) fills.run(`${n}${'x'.repeat(100_000)}`)
  }, /full/)
  await jobs.push('y')
  await until(() => liveIn(path, QUEUE) === 0, 'it is done')
  other.close()
})

test('on a full disk, opening is StoreFull; then it works', { skip: noDisk }, async (t) => {
  const disk = smallDisk(t)
  if (disk === undefined) return
  const old = join(disk.path, 'old.db')
  const pond = await Millpond.open(`sqlite:${old}`)
  const { id } = await pond.queue<number>(QUEUE).push(1)
  await pond.close()
  fill(disk)
  const full = (error: unknown) => isMillpondError(error, 'StoreFull')
  for (const path of [join(disk.path, 'fresh.db'), old]) {
    await assert.rejects(settles('open', Millpond.open(`sqlite:${path}`)), full, path)
  }
  disk.free()
  const fresh = await Millpond.open(`sqlite:${join(disk.path, 'fresh.db')}`)
  await fresh.queue<number>(QUEUE).push(1)
  await fresh.close()
  const again = await Millpond.open(`sqlite:${old}`)
  assert.equal((await again.job(id))?.state, 'waiting')
  await again.close()
})

async function completes(t: TestContext, transaction: boolean, lease: Duration): Promise<void> {
  const disk = smallDisk(t)
  if (disk === undefined) return
  const path = join(disk.path, 'app.db')
  withEffects(path)
  const pond = await Millpond.open(`sqlite:${path}`)
  after(t, () => pond.close({ timeout: 100 }))
  const troubles: string[] = []
  pond.on('error', ({ code }) => troubles.push(code))
  const ended: string[] = []
  for (const name of ['stale', 'dead', 'lost'] as const) pond.on(name, ({ id }) => ended.push(`${name} ${id}`))
  const jobs = pond.queue<number>(QUEUE, { lease, retry: { attempts: 1000, backoff: () => 0 } })
  const pushed = await jobs.pushMany(Array.from({ length: 12 }, (_, i) => i))
  const gate = Promise.withResolvers<void>()
  let began = 0
  const effects: string[] = []
  const worker = jobs.work(
    async ({ id }, ctx) => {
      began++
      await gate.promise
      if (transaction) await ctx.tx('insert into effects (id) values (?)', [id])
      else effects.push(id)
    },
    { concurrency: 4, transaction },
  )
  await until(() => began === 4, 'the first ones run')
  const filling = await pushUntilFull(pond, 'filling')
  assert.deepEqual(filling.codes, new Set(['StoreFull']))
  fill(disk)
  gate.resolve()
  await until(() => troubles.length >= 3, 'the worker met the full disk several times')
  if (lease !== LONG) {
    const held = `select 1 from millpond_jobs where state = 'running' and lease_until > ?`
    await until(() => look(path, held, Date.now()).length === 0, 'all leases ran out')
  }
  assert.deepEqual(new Set(troubles), new Set(['StoreFull']))
  assert.deepEqual(faultsOf(path), [])

  disk.free()
  await until(() => liveIn(path, QUEUE) === 0, 'all is done')
  await worker.close()
  const applied = transaction ? look(path, 'select id from effects').map(({ id }) => String(id)) : effects
  const once = transaction || lease === LONG ? applied : [...new Set(applied)]
  assert.deepEqual(once.toSorted(), pushed.map(({ id }) => id).toSorted())
  if (lease === LONG) assert.deepEqual(ended, [])
  const { kept, real } = countsOf(path, QUEUE)
  assert.deepEqual(kept, real)
  assert.equal(real.done, pushed.length)
  assert.equal(countsOf(path, 'filling').real.waiting, filling.ids.length)
  assert.deepEqual(faultsOf(path), [])
}

for (const transaction of [false, true]) {
  for (const lease of [LONG, '300ms'] as const) {
    const mode = transaction ? 'transaction: true' : 'plain'
    const title = `${mode}: completions that find no room are told again until there is, with a lease of ${lease}`
    test(title, { skip: noDisk }, (t) => completes(t, transaction, lease))
  }
}

const noLimits =
  spawnSync('bash', ['-c', 'ulimit -S -f 1000 && prlimit --version']).status !== 0 &&
  'a limit on the size of files needs bash and prlimit'

test('pushes reach a limit on the size of files: StoreFull, and on they go once it is raised', {
  skip: noLimits,
}, async (t) => {
  const path = join(scratch(t), 'app.db')
  const config: FillerConfig = { url: `sqlite:${path}`, queue: QUEUE }
  const filler = start(t, 'filler', config, { fileLimit: 2000 })
  const { ids, codes } = await filler.hear('full')
  assert.deepEqual(codes, ['StoreFull'])
  assert.ok(Array.isArray(ids) && ids.length > 0)
  assert.deepEqual(idsIn(path), ids.toSorted())
  assert.deepEqual(faultsOf(path), [])

  execFileSync('prlimit', ['--pid', String(filler.pid), '--fsize=unlimited:'])
  filler.send({ kind: 'more' })
  const more = await filler.hear('more')
  assert.ok(Array.isArray(more.ids))
  assert.deepEqual(await filler.exited, { code: 0, signal: null }, filler.words)
  assert.deepEqual(idsIn(path), [...ids, ...more.ids].sort())
  assert.deepEqual(faultsOf(path), [])
  const { kept, real } = countsOf(path, QUEUE)
  assert.deepEqual(kept, real)
})
