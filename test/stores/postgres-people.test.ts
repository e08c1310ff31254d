/** The functions as people call them from psql. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { missingReason } from '../servers/shared.ts'
import { claimAll, job, server, withStore } from './postgres-fixture.ts'

const ERROR = { code: 'HandlerFailed', name: 'Error', message: 'no such address' }

describe('functions for people', { skip: missingReason('postgres') }, () => {
  test('list with a filter, and go on from its next', async () => {
    await withStore(async (store, schema) => {
      await store.operations.push({
        jobs: Array.from({ length: 5 }, (_, at) => job({ group: at % 2 === 0 ? 'a' : 'b' })),
      })
      const claims = await claimAll(store)
      const items = claims.map(({ id, fence }) => ({ id, fence, error: ERROR, delay: null }))
      await store.operations.fail({ queue: 'emails', items })
      const filter = JSON.stringify({ group: 'a', errorText: 'address' })
      const page = (after: string | null) =>
        server(`select jobs, next from ${schema}.list('emails', 'dead', 2, $1, $2)`, [after, filter])
      const [first] = await page(null)
      assert.deepEqual(Array.isArray(first?.jobs) && first.jobs.map(({ group, error }) => [group, JSON.parse(error)]), [
        ['a', ERROR],
        ['a', ERROR],
      ])
      const [second] = await page(String(first?.next))
      assert.deepEqual([Array.isArray(second?.jobs) && second.jobs.length, second?.next], [1, null])
    })
  })

  test('update, remove, and restore what find has told', async () => {
    await withStore(async (store, schema) => {
      const { id, ...one } = job({ delay: 60_000 })
      await store.operations.push({ jobs: [{ id, ...one }] })
      const change = JSON.stringify([{ id, priority: 9, data: 'j{"n":2}' }])
      assert.deepEqual(await server(`select ${schema}.update($1) as outcomes`, [change]), [{ outcomes: ['updated'] }])
      const [found] = await server(`select json_agg(record)::text as records from ${schema}.find($1) as record`, [[id]])
      const removed = await server(
        `select removed, more from ${schema}.remove(queue => 'emails', state => 'scheduled')`,
      )
      assert.deepEqual(removed, [{ removed: 1, more: false }])
      const restored = await server(`select ${schema}.restore($1) as outcomes`, [found?.records])
      assert.deepEqual(restored, [{ outcomes: ['restored'] }])
      const [record] = await store.operations.find({ ids: [id] })
      assert.deepEqual([record?.state, record?.priority, record?.data.body], ['scheduled', 9, '{"n":2}'])
    })
  })

  test('a push that waits for others, or is a part of one, and what cannot be', async () => {
    await withStore(async (store, schema) => {
      const push = async (options: string) => {
        const [row] = await server(`select ${schema}.push('emails', '1', ${options}) as id`)
        return String(row?.id)
      }
      const parent = await push("key => 'k'")
      const child = await push(`after => array['${parent}'::uuid]`)
      await push(`part_of => '${parent}'`)
      const [found] = await store.operations.find({ ids: [child] })
      assert.deepEqual([found?.state, found?.waitsFor], ['blocked', 2])
      const held = push(`key => 'k', after => array['${child}'::uuid]`)
      await assert.rejects(held, { code: 'MP007', message: new RegExp(`KeyHeld: job ${parent}`) })
      const unknown = push(`part_of => '${job().id}'`)
      await assert.rejects(unknown, { code: 'MP005', message: /ParentUnknown/ })
    })
  })

  test('what would harm a claim or a sweep is not restored', async () => {
    await withStore(async (store, schema) => {
      const { id } = job()
      await store.operations.push({ jobs: [job({ id })] })
      const [record] = await server(`select ${schema}.find($1) as record`, [[id]])
      await store.operations.remove({ ids: [id] })
      for (const wrong of [
        { state: 'running' },
        { state: 'lost' },
        { fence: '9223372036854775807' },
        { pushedAt: -1 },
        { priority: 10 },
      ]) {
        const records = JSON.stringify([Object.assign({}, record?.record, wrong)])
        await assert.rejects(
          server(`select ${schema}.restore($1)`, [records]),
          { code: '22023' },
          JSON.stringify(wrong),
        )
      }
      assert.deepEqual(await store.operations.find({ ids: [id] }), [null])
    })
  })

  test('a job that was due long ago and is restored as scheduled is found by the next sweep', async () => {
    await withStore(async (store) => {
      await store.operations.sweep({ limit: 100 })
      const late = job({ delay: 60_000 })
      await store.operations.push({ jobs: [late] })
      await store.operations.sweep({ limit: 100 })
      const [record] = await store.operations.find({ ids: [late.id] })
      assert.ok(record)
      await store.operations.remove({ ids: [late.id] })
      await store.operations.restore({ records: [{ ...record, dueAt: 1 }] })
      assert.equal((await store.operations.sweep({ limit: 100 })).promoted, 1)
    })
  })

  test('heartbeats are told by workers, and a worker that is gone is not', async () => {
    await withStore(async (store, schema) => {
      await store.operations.push({ jobs: [job()] })
      const worker = { id: 'w', queue: 'emails', host: 'h', pid: 7, slots: 4, busy: 1 }
      const known = await server(`select ${schema}.heartbeat($1) as known`, [JSON.stringify([worker])])
      assert.deepEqual(known, [{ known: [true] }])
      assert.equal((await server(`select ${schema}.workers() ->> 'pid' as pid`))[0]?.pid, '7')
      await server(`select ${schema}.heartbeat('[]', '{w}')`)
      assert.deepEqual(await store.operations.workers({}), [])
    })
  })
})
