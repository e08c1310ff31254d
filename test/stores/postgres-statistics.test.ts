/** Statistics of the planner may be of a moment that is over. What a call looks at must not depend on them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { missingReason } from '../servers/shared.ts'
import { ERROR } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { job, server, withStore } from './postgres-fixture.ts'

const PAIRS = 20
const BLOCKED = 1000

describe('statistics of a moment at which no job was blocked', { skip: missingReason('postgres') }, () => {
  test('let the end of a job look at its own children alone', async () => {
    await withStore(async ({ operations }, schema) => {
      const pairs = (count: number) =>
        Array.from({ length: count }, () => job({ queue: 'parents' })).flatMap((parent) => [
          parent,
          job({ queue: 'children', after: [parent.id] }),
        ])
      const end = async () => {
        const { jobs } = await operations.claim({ queue: 'parents', worker: 'w', limit: 1000, lease: 60_000 })
        for (const [n, one] of jobs.entries()) {
          const items = [{ id: one.id, fence: one.fence, error: ERROR, delay: null, result: null }]
          const ended = await (n % 2 === 0 ? operations.complete : operations.fail)({ queue: 'parents', items })
          assert.deepEqual(ended, [n % 2 === 0 ? 'ok' : 'dead'])
        }
      }
      await operations.configure({ queue: 'parents', attempts: 1 })
      await operations.push({ jobs: pairs(500) })
      await operations.claim({ queue: 'parents', worker: 'w', limit: 500, lease: 60_000 }).then(({ jobs }) =>
        operations.complete({
          queue: 'parents',
          items: jobs.map(({ id, fence }) => ({ id, fence, result: null })),
        }),
      )
      await server(`analyze ${schema}.children`)
      const root = job({ queue: 'root', delay: 3_600_000 })
      await operations.push({ jobs: [root, ...Array.from({ length: BLOCKED }, () => job({ after: [root.id] }))] })
      await operations.push({ jobs: pairs(PAIRS) })
      // Of the index that a lookup by id has no use for.
      const read = async () => {
        const [row] = await server(
          "select idx_tup_read as read from pg_stat_user_indexes where schemaname = $1 and indexrelname = 'children_blocked'",
          [schema],
        )
        return Number(row?.read)
      }
      const updated = async () => {
        const [row] = await server(
          "select n_tup_upd as count from pg_stat_user_tables where schemaname = $1 and relname = 'children'",
          [schema],
        )
        return Number(row?.count)
      }
      const count = await updated()
      await end()
      await until(async () => (await updated()) >= count + PAIRS, 'the statistics have all endings')
      const looked = await read()
      assert.ok(looked < BLOCKED, `${looked} entries were read for ${PAIRS} endings beside ${BLOCKED} blocked jobs`)
    })
  })
})
