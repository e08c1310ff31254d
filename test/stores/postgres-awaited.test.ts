/**
 * A job that is restored before what it waits for makes endings in all queues look for children, until none is awaited any more: then they
 * do so in the queues that have parents alone.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'
import { missingReason } from '../servers/shared.ts'
import { newId, recordOf } from '../support/jobs.ts'
import { server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')
/** Ms between two walks of the sweeps. */
const WALK = 60_000
/** Links that a sweep looks at. */
const STEP = 500

interface Scene {
  store: Store
  schema: string
  clock: { now: number }
}

const scene = (check: (scene: Scene) => Promise<void>) => async () => {
  const clock = { now: 1_700_000_000_000 }
  await withStore((store, schema) => check({ store, schema, clock }), { clock: () => clock.now })
}

/** A job that waits for a parent, which need not be there. */
const child = (parent: string): JobRecord => recordOf({ queue: 'children', state: 'blocked', after: [parent] })
const parent = (id: string): JobRecord => recordOf({ id, queue: 'late' })

async function expecting({ schema }: Scene): Promise<string[]> {
  const rows = await server(
    `select distinct coalesce(name, 'any') as name from ${schema}.parents left join ${schema}.queues on id = queue order by 1`,
  )
  return rows.map(({ name }) => String(name))
}

/** A walk of the sweeps, or as much of it as so many calls do. */
async function walk({ store, clock }: Scene, steps = 10): Promise<void> {
  clock.now += WALK + 1
  await next(store, steps)
}

async function next({ operations }: Store, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await operations.sweep({ limit: 1000 })
}

async function completeAll({ operations }: Store, queue: string): Promise<void> {
  const { jobs } = await operations.claim({ queue, worker: 'w', limit: 1000, lease: 60_000 })
  const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
  if (items.length > 0) await operations.complete({ queue, items })
}

const stateOf = async ({ operations }: Store, { id }: JobRecord) => (await operations.find({ ids: [id] }))[0]?.state

/** Restores in a transaction of its own, which is left open. */
async function restoring(schema: string, clock: { now: number }, record: JobRecord) {
  const client = new pg.Client({ connectionString: urlOf('postgres') })
  await client.connect()
  await client.query('begin')
  const given = JSON.stringify([{ ...record, data: 'jnull', progress: null, result: null, error: null }])
  await client.query(`select ${schema}.restore($1::json, $2)`, [given, clock.now])
  return {
    async commit() {
      await client.query('commit')
      await client.end()
    },
  }
}

describe('awaited parents', { skip }, () => {
  test(
    'of which none is left: endings look in their queues alone',
    scene(async (scene) => {
      const { store } = scene
      const ids = [newId(), newId()]
      const children = ids.map(child)
      await store.operations.restore({ records: children })
      await walk(scene)
      await walk(scene)
      assert.deepEqual(await expecting(scene), ['any'])
      await store.operations.restore({ records: ids.slice(0, 1).map(parent) })
      await walk(scene)
      assert.deepEqual(await expecting(scene), ['any', 'late'])
      await store.operations.restore({ records: ids.slice(1).map(parent) })
      await walk(scene)
      assert.deepEqual(await expecting(scene), ['late'])
      // With the end itself, no sweep.
      await completeAll(store, 'late')
      assert.deepEqual(await Promise.all(children.map((each) => stateOf(store, each))), ['waiting', 'waiting'])
      // And if it begins again.
      const other = child(newId())
      await store.operations.restore({ records: [other] })
      assert.deepEqual(await expecting(scene), ['any', 'late'])
    }),
  )

  test(
    'that nothing waits for any more are not awaited',
    scene(async (scene) => {
      const { store } = scene
      const [one, other] = [child(newId()), child(newId())]
      await store.operations.restore({ records: [one, other] })
      await store.operations.cancel({ ids: [one.id] })
      await walk(scene)
      assert.deepEqual(await expecting(scene), ['any'])
      await store.operations.remove({ ids: [other.id] })
      await walk(scene)
      assert.deepEqual(await expecting(scene), [])
    }),
  )

  test(
    'one that is found late in a walk of several steps',
    scene(async (scene) => {
      const { store } = scene
      const ids = Array.from({ length: STEP + 10 }, newId)
      const last = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
      await store.operations.restore({ records: ids.map(parent) })
      await store.operations.restore({ records: [...ids, last].map(child) })
      await walk(scene, 1)
      await walk(scene)
      assert.deepEqual(await expecting(scene), ['any', 'late'])
      await store.operations.restore({ records: [parent(last)] })
      await walk(scene, 1)
      assert.deepEqual(await expecting(scene), ['any', 'late'], 'the walk is not over')
      await next(store, 1)
      assert.deepEqual(await expecting(scene), ['late'])
    }),
  )

  test(
    'one that comes, and ends, in the middle of a walk',
    scene(async (scene) => {
      const { store } = scene
      const ids = Array.from({ length: STEP }, newId)
      const last = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
      const waits = child(last)
      await store.operations.restore({ records: [...ids.map(child), waits] })
      await store.operations.restore({ records: ids.map(parent) })
      await walk(scene, 1)
      await store.operations.restore({ records: [{ ...parent(last), queue: 'other' }] })
      await completeAll(store, 'other')
      assert.equal(await stateOf(store, waits), 'waiting')
      await next(store, 1)
      assert.deepEqual(await expecting(scene), ['late'])
    }),
  )

  for (const [order, flags] of [
    ['before the walk, in all of which it is open', 1],
    ['before the walk, and commits after its first step', 1],
    ['after the first step of the walk, in the rest of which it is open', 2],
    ['after the first step of the walk, and commits before the next one', 2],
  ] as const) {
    test(
      `a restore under way begins ${order}`,
      scene(async (scene) => {
        const { store, schema, clock } = scene
        const ids = Array.from({ length: STEP + 10 }, newId)
        await store.operations.restore({ records: ids.map(child) })
        await store.operations.restore({ records: ids.map(parent) })
        // Its links are behind the first step, where this walk does not look any more.
        const [id] = ['00000000-0000-7000-8000-000000000001']
        const late = child(id)
        const isLate = flags === 2
        let open = isLate ? undefined : await restoring(schema, clock, late)
        await walk(scene, 1)
        if (isLate) open = await restoring(schema, clock, late)
        const commits = order.includes('and commits')
        if (commits) await open?.commit()
        await next(store, 1)
        if (!commits) await open?.commit()
        assert.ok((await expecting(scene)).includes('any'))
        await walk(scene)
        assert.ok((await expecting(scene)).includes('any'))
        await store.operations.restore({ records: [parent(id)] })
        await completeAll(store, 'late')
        assert.equal(await stateOf(store, late), 'waiting')
        await walk(scene)
        assert.ok(!(await expecting(scene)).includes('any'))
      }),
    )
  }

  test(
    'a sweep beside another one leaves the walk to it',
    scene(async (scene) => {
      const { store, schema, clock } = scene
      await store.operations.restore({ records: [child(newId())] })
      clock.now += WALK + 1
      const client = new pg.Client({ connectionString: urlOf('postgres') })
      await client.connect()
      await client.query('begin')
      await client.query(`select ${schema}.prune_links($1)`, [clock.now])
      await next(store, 1)
      await client.query('rollback')
      await client.end()
      assert.deepEqual(await server(`select count(*)::integer as walks from ${schema}.link_walk`), [{ walks: 0 }])
      await next(store, 1)
      assert.deepEqual(await server(`select count(*)::integer as walks from ${schema}.link_walk`), [{ walks: 1 }])
    }),
  )
})
