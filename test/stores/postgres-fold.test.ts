/** How many arrivals of a grouped queue a claim folds. Judged by those that are left. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { missingReason } from '../servers/shared.ts'
import { job, server, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

/** A grouped queue with one job, whose arrival is folded. */
const withGroups = (body: (store: Store, schema: string) => Promise<void>) =>
  withStore(async (store, schema) => {
    await store.operations.configure({ queue: 'q', groupRunning: 1 })
    await store.operations.push({ jobs: [job({ queue: 'q', group: 'first', fresh: true })] })
    await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 60_000 })
    assert.equal(await left(schema), 0)
    await body(store, schema)
  })

/** As `count` pushes write them: push n names the groups from n times `step` on, `names` of them. */
const arrive = (schema: string, { count, names, step }: { count: number; names: number; step: number }) =>
  server(
    `insert into ${schema}.arrivals (queue, groups)
      select turns.queue, array(select 'g' || n * $3::integer + m from generate_series(1, $2::integer) as m)
      from ${schema}.turns cross join generate_series(0, $1::integer - 1) as n order by n`,
    [count, names, step],
  )

async function left(schema: string): Promise<number> {
  const [row] = await server(`select count(*)::integer as count from ${schema}.arrivals`)
  return Number(row?.count)
}

/** Arrivals and known groups after each claim, until all are folded. */
async function fold(store: Store, schema: string): Promise<{ left: number; groups: number }[]> {
  const after: { left: number; groups: number }[] = []
  do {
    await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 60_000 })
    const [row] = await server(`select count(*)::integer as count from ${schema}.groups where name <> 'first'`)
    after.push({ left: await left(schema), groups: Number(row?.count) })
    assert.ok(after.length < 10, JSON.stringify(after))
  } while (after.at(-1)?.left !== 0)
  return after
}

describe('a claim folds', { skip }, () => {
  test('a thousand pushes that name the same few groups, however often they name them', () =>
    withGroups(async (store, schema) => {
      await arrive(schema, { count: 1500, names: 30, step: 0 })
      assert.deepEqual(await fold(store, schema), [
        { left: 500, groups: 30 },
        { left: 0, groups: 30 },
      ])
    }))

  test('as many pushes as name 10,000 groups', () =>
    withGroups(async (store, schema) => {
      await arrive(schema, { count: 48, names: 500, step: 500 })
      assert.deepEqual(await fold(store, schema), [
        { left: 28, groups: 10_000 },
        { left: 8, groups: 20_000 },
        { left: 0, groups: 24_000 },
      ])
    }))

  test('as many pushes as name 10,000 groups, each named by two of them', () =>
    withGroups(async (store, schema) => {
      await arrive(schema, { count: 47, names: 1000, step: 500 })
      assert.deepEqual(await fold(store, schema), [
        // The first of a claim's 19 pushes names 1,000 groups, each other one 500 more. The second claim knows 500 of them.
        { left: 28, groups: 10_000 },
        { left: 9, groups: 19_500 },
        { left: 0, groups: 24_000 },
      ])
    }))

  test('pushes that name the same 10,000 groups, however often they name them', () =>
    withGroups(async (store, schema) => {
      for (let round = 0; round < 10; round++) await arrive(schema, { count: 2, names: 5000, step: 5000 })
      assert.deepEqual(await fold(store, schema), [{ left: 0, groups: 10_000 }])
    }))

  test('as many pushes as hold 100,000 names, of however few groups', () =>
    withGroups(async (store, schema) => {
      await arrive(schema, { count: 250, names: 1000, step: 0 })
      assert.deepEqual(await fold(store, schema), [
        { left: 150, groups: 1000 },
        { left: 50, groups: 1000 },
        { left: 0, groups: 1000 },
      ])
    }))
})
