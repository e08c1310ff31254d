/** Schedules go with the jobs, from every store to every other one: no time is lost, none fires at both ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { stores } from '../conformance/stores.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { openPlainStore } from '../support/plain-store.ts'

const NAMES = ['memory', 'sqlite', 'redis', 'postgres']
const kinds = stores.filter(({ name }) => NAMES.includes(name))
const EVERY = 10_000

const declaration = (name: string, given: Partial<Declaration> = {}): Declaration => ({
  ...{ name, version: '1', when: 'every 10s', tz: 'Europe/Paris', missed: 'all', jitter: 5, from: 7, until: null },
  ...{ paused: false, again: false },
  job: {
    ...{ queue: 'reports', priority: 7, key: 'k', group: null, cost: 3, attempts: 2, timeout: 9000 },
    data: { encoding: 'bytes', body: Uint8Array.of(0, 255) },
  },
  ...given,
})

const listOf = ({ operations }: Store) => operations.schedules({ limit: 100 })
const plan = ({ operations }: Store, name: string, expected: number, next: number) =>
  operations.fire({ firings: [{ name, version: '1', expected, next, jobs: [] }] })

for (const from of kinds) {
  for (const to of kinds) {
    test(`${from.name} to ${to.name}`, { skip: from.skip || to.skip }, async () => {
      const clock = { now: EPOCH }
      const options = { clock: () => clock.now }
      const [source, target] = [await from.open(options), await to.open(options)]
      try {
        const { operations } = source.store
        await operations.declare({
          schedules: [declaration('missed'), declaration('new'), declaration('paused', { paused: true })],
        })
        await operations.declare({ schedules: [declaration('own')] })
        await target.store.operations.declare({ schedules: [declaration('own', { version: '2', when: '@daily' })] })
        await plan(source.store, 'missed', EPOCH, EPOCH + EVERY)
        const before = await listOf(source.store)
        // Its time has come, and nobody has fired it.
        clock.now += 2 * EVERY

        const dry = await move(source.store, target.store, { dryRun: true })
        assert.deepEqual([dry.schedules, await listOf(source.store)], [4, before])
        assert.equal((await move(source.store, target.store)).schedules, 4)
        assert.deepEqual(await listOf(source.store), [])
        const [missed, fresh, own, paused] = await listOf(target.store)
        const { nextAt, planned, changedAt, ...rest } = before[0] ?? assert.fail()
        assert.deepEqual(missed, { ...rest, nextAt, planned, changedAt: clock.now, declared: true })
        assert.deepEqual([fresh?.nextAt, fresh?.planned], [EPOCH + 7, true], 'the first time after its declaration')
        assert.deepEqual([own?.version, own?.when], ['2', '@daily'], 'what the target has declared stays')
        assert.equal(paused?.paused, true)
        assert.equal((await move(source.store, target.store)).schedules, 0)
      } finally {
        await Promise.all([source.dispose(), target.dispose()])
      }
    })
  }
}

test('a move that was killed goes on: the source has given its next time away', async () => {
  const clock = { now: EPOCH }
  const [memory] = kinds
  assert.ok(memory)
  const [source, target] = [
    await memory.open({ clock: () => clock.now }),
    await memory.open({ clock: () => clock.now }),
  ]
  await source.store.operations.declare({ schedules: [declaration('s', { from: null })] })
  await plan(source.store, 's', EPOCH, EPOCH + EVERY)
  const firing = { name: 's', version: '1', expected: EPOCH + EVERY, next: null, jobs: [] }
  await source.store.operations.fire({ firings: [firing] })
  clock.now += 3 * EVERY
  await move(source.store, target.store)
  assert.equal((await listOf(target.store))[0]?.nextAt, EPOCH + EVERY)
  await Promise.all([source.dispose(), target.dispose()])
})

test('a target that keeps none is refused before anything is moved, unless they are to stay', async () => {
  const [memory] = kinds
  assert.ok(memory)
  const source = await memory.open()
  const target = openPlainStore()
  await source.store.operations.declare({ schedules: [declaration('s')] })
  await assert.rejects(move(source.store, target), { code: 'NotSupported' })
  assert.equal((await move(source.store, target, { settings: false })).schedules, 0)
  assert.equal((await listOf(source.store)).length, 1)
  await Promise.all([source.dispose(), target.close()])
})
