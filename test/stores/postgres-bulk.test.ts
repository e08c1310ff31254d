/** Bulk changes on PostgreSQL: of the rows that passed, and of no others. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, job, server, urlOf, withStore } from './postgres-fixture.ts'

const request = { queue: 'emails', limit: 10 } as const

async function done(store: Store, group: string): Promise<string> {
  await store.operations.push({ jobs: [job({ group })] })
  const items = (await claimAll(store)).map((each) => ({ ...each, result: null }))
  assert.deepEqual(await store.operations.complete({ queue: 'emails', items }), ['ok'])
  return items[0]?.id ?? ''
}

describe('a change in bulk', { skip: missingReason('postgres') }, () => {
  test('leaves a done job alone that lies in another segment at the place of one that passed', () =>
    withStore(async (store, schema) => {
      const wanted = await done(store, 'wanted')
      await server(
        `update ${schema}.segments set current = segment = 1, used = segment in (0, 1) where segment in (0, 1)`,
      )
      const other = await done(store, 'other')
      const places = await server(`select distinct ctid from ${schema}.done`)
      assert.equal(places.length, 1, 'both lie at the same place of their segments')
      const step = await store.operations.bulk({
        ...{ ...request, state: 'done', change: { kind: 'remove' }, filter: { group: 'wanted' } },
      })
      assert.deepEqual([step.matched, step.changed], [1, 1])
      const [gone, kept] = await store.operations.find({ ids: [wanted, other] })
      assert.deepEqual([gone, kept?.state], [null, 'done'])
    }))

  for (const kind of ['update', 'cancel', 'remove'] as const) {
    test(`changes none where somebody holds all that passed: ${kind}`, () =>
      withStore(async (store, schema) => {
        const { id } = job()
        await store.operations.push({ jobs: [job({ id })] })
        const holder = new pg.Client(urlOf('postgres'))
        await holder.connect()
        try {
          await holder.query('begin')
          await holder.query(`select from ${schema}.waiting for update`)
          const change = kind === 'update' ? { kind, priority: 9 } : { kind }
          const step = await store.operations.bulk({ ...request, state: 'waiting', change })
          assert.deepEqual([step.matched, step.changed], [1, 0])
        } finally {
          await holder.end()
        }
        assert.equal((await store.operations.find({ ids: [id] }))[0]?.priority, 4)
      }))
  }
})
