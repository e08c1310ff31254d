/**
 * A move that ends at any of its steps, before a call or after it: no job is in neither place, and the next move goes on, without a job
 * twice. A kill is a call that never answers, and whose move makes no further call.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'
import { JOB_STATES } from '../../src/values/jobs/records.ts'
import { stores } from '../conformance/stores.ts'
import { newJobs } from '../support/jobs.ts'
import { Fuse, Killed } from './fuse.ts'
import { everyRecord, foundIn } from './records.ts'

const memory = stores.find(({ name }) => name === 'memory')
const sqlite = stores.find(({ name }) => name === 'sqlite')
assert.ok(memory && sqlite)

/** @returns whether the move came so far */
async function killedAt(at: number, when: 'before' | 'after', source: Store, target: Store): Promise<boolean> {
  const records = everyRecord('q', Date.now())
  await source.operations.configure({ queue: 'q', running: 3 })
  await source.operations.restore({ records })
  const fuse = new Fuse(at, when)
  const ended = await move(fuse.on(source), fuse.on(target)).catch((error: unknown) => error)
  assert.equal(ended instanceof Killed, fuse.calls >= at)
  const there = await foundIn(target, records)
  const here = await foundIn(source, records)
  const nowhere = records.filter((_, index) => there[index] === null && here[index] === null)
  assert.deepEqual(nowhere, [])

  const report = await move(source, target)
  assert.deepEqual([report.left, report.remaining], [0, 0])
  const found = await foundIn(target, records)
  // No state is lost; only a job that was just taken may be due a while later.
  const states = (list: readonly (JobRecord | null)[]) => list.map((one) => one?.state.replace('scheduled', 'waiting'))
  assert.deepEqual(states(found), states(records))
  const [stats] = await target.operations.stats({ queue: 'q' })
  assert.equal(
    JOB_STATES.reduce((sum, state) => sum + (stats?.counts[state] ?? 0), 0),
    records.length,
  )
  return fuse.calls >= at
}

for (const when of ['before', 'after'] as const) {
  test(`killed ${when} each call, in turn, and started again`, async () => {
    let at = 0
    for (let isReached = true; isReached; ) {
      at++
      const source = await memory.open()
      const target = await memory.open()
      try {
        isReached = await killedAt(at, when, source.store, target.store)
      } catch (error) {
        throw new Error(`at call ${at}`, { cause: error })
      } finally {
        await source.dispose()
        await target.dispose()
      }
    }
    assert.ok(at > 20, `${at} calls`)
  })
}

test('a taken job of a killed move starts nowhere at once, and comes back at the source when nobody goes on', async () => {
  let now = 1_800_000_000_000
  const clock = () => now
  const source = await sqlite.open({ clock })
  const target = await memory.open()
  try {
    const jobs = newJobs(5)
    await source.store.operations.push({ jobs })
    const dies = (name: string, input: unknown) => name === 'restore' || JSON.stringify(input).includes('runAt')
    const dead = () => Promise.reject(new Killed())
    // The source does not hear of the end either, as of a kill.
    const mortal = (store: Store) => around(store, (name, input, next) => (dies(name, input) ? dead() : next(input)))
    await assert.rejects(move(mortal(source.store), mortal(target.store)), Killed)
    const claim = { queue: 'q', worker: 'w', limit: 10, lease: null }
    await source.store.operations.sweep({ limit: 100 })
    assert.equal((await source.store.operations.claim(claim)).jobs.length, 0)
    now += 60_000
    await source.store.operations.sweep({ limit: 100 })
    const claimed = await source.store.operations.claim(claim)
    assert.deepEqual(
      claimed.jobs.map(({ id, attempt }) => [id, attempt]),
      jobs.map(({ id }) => [id, 1]),
    )
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('what a killed move had taken is moved first, before it comes due again', async () => {
  const source = await memory.open()
  const target = await memory.open()
  try {
    await source.store.operations.push({ jobs: newJobs(3000) })
    const ids: string[][] = []
    const heard = (dies: boolean) =>
      around(target.store, (name, input, next) => {
        if (name === 'restore' && 'records' in input) ids.push(input.records.map(({ id }) => id))
        return dies && ids.length === 1 ? Promise.reject(new Killed()) : next(input)
      })
    const deaf = around(source.store, (_, input, next) => {
      return ids.length > 0 && JSON.stringify(input).includes('runAt') ? Promise.reject(new Killed()) : next(input)
    })
    await assert.rejects(move(deaf, heard(true)), Killed)
    await move(source.store, heard(false))
    const [killed = [], ...others] = ids
    assert.deepEqual(others.flat().slice(0, 2000).sort().slice(0, 1000), [...killed].sort())
    assert.equal(new Set(others.flat()).size, 3000)
  } finally {
    await source.dispose()
    await target.dispose()
  }
})
