/** From every store to every other one: each state and each field of jobs, settings, limits and pauses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'
import { stores } from '../conformance/stores.ts'
import { recordOf } from '../support/jobs.ts'
import { everyRecord, foundIn, idsIn } from './records.ts'

const NAMES = ['memory', 'sqlite', 'redis', 'postgres']
const kinds = stores.filter(({ name }) => NAMES.includes(name))

const RATE = { count: 100, per: 1000, burst: 5 }
const LIMITS = { running: 2, rate: RATE, weight: 3 }

async function configured({ operations }: Store): Promise<void> {
  const backoff = { base: 500, factor: 3, max: 9000, jitter: 0 }
  await operations.configure({ queue: 'all', capacity: 50_000, keepDone: 7_200_000, attempts: 4, backoff, lease: 5000 })
  await operations.configure({ queue: 'all', attempts: 6, rate: RATE, by: 'operator' })
  await operations.configure({ queue: 'paused', paused: true })
  await operations.limitGroup({ queue: 'grouped', group: 'a', limits: LIMITS })
  await operations.configure({ queue: 'grouped', groupRunning: 1 })
}

/** Without the one default that differs. */
async function settingsIn({ operations }: Store, queue: string) {
  const settings = await operations.settings({ queue })
  assert.ok(settings)
  const { capacity, ...values } = settings.values
  return { ...settings, values: { ...values, capacity: capacity === 100_000 ? null : capacity } }
}

/** A restored job's fence is above those that the target has given out. */
function assertSame(found: readonly (JobRecord | null)[], records: readonly JobRecord[]): void {
  records.forEach((record, index) => {
    const there = found[index]
    assert.ok(there, `${record.state} ${index} is there`)
    assert.ok(there.fence >= record.fence)
    assert.deepEqual({ ...there, fence: 0 }, { ...record, fence: 0 })
  })
}

for (const from of kinds) {
  for (const to of kinds) {
    const skip = from.skip || to.skip
    test(`${from.name} to ${to.name}: all states, fields and settings`, { skip }, async () => {
      const source = await from.open()
      const target = await to.open()
      try {
        const now = Date.now()
        await configured(source.store)
        const records = everyRecord('all', now)
        const paused = [1, 2, 3].map((n) => recordOf({ queue: 'paused', pushedAt: now - n, dueAt: now - n }))
        const grouped = ['a', 'a', 'b', null].map((group) => recordOf({ queue: 'grouped', group, dueAt: now - 1 }))
        const all = [...records, ...paused, ...grouped]
        assert.ok((await source.store.operations.restore({ records: all })).every((outcome) => outcome === 'restored'))

        const dry = await move(source.store, target.store, { dryRun: true })
        assert.deepEqual(
          [dry.moved, dry.remaining, await foundIn(target.store, all)],
          [0, all.length, all.map(() => null)],
        )

        const report = await move(source.store, target.store)
        assert.deepEqual([report.moved, report.repeated, report.left, report.remaining], [all.length, 0, 0, 0])
        assert.deepEqual(report.queues.find(({ queue }) => queue === 'all')?.moved, {
          ...{ blocked: 0, waiting: 5, scheduled: 2, running: 0, done: 2, dead: 1, cancelled: 1 },
        })
        assertSame(await foundIn(target.store, all), all)
        assert.deepEqual(
          await foundIn(source.store, all),
          all.map(() => null),
        )
        assert.deepEqual(
          await idsIn(target.store, 'paused', 'waiting'),
          paused.map(({ id }) => id),
        )

        for (const queue of ['all', 'paused', 'grouped']) {
          assert.deepEqual(await settingsIn(target.store, queue), await settingsIn(source.store, queue), queue)
        }
        const [group] = await target.store.operations.groups({ queue: 'grouped', group: 'a', limit: 1 })
        assert.deepEqual(group?.limits, LIMITS)
      } finally {
        await source.dispose()
        await target.dispose()
      }
    })
  }
}

for (const { name, skip, open } of kinds) {
  test(`${name} to itself is refused, and no job is touched`, { skip }, async () => {
    const { store, dispose } = await open()
    try {
      const record = recordOf()
      await store.operations.restore({ records: [record] })
      // As of another connection: the operations are others.
      const again = { ...store, operations: { ...store.operations } }
      await assert.rejects(move(store, again), { code: 'InvalidOption', message: /same store/ })
      assertSame(await foundIn(store, [record]), [record])
    } finally {
      await dispose()
    }
  })
}
