/** Claims of large jobs come in answers of a bounded size. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingReason } from '../servers/shared.ts'
import { job, openPostgres, server, urlOf } from './postgres-fixture.ts'

const MIB = 1_048_576
const large = () => job({ data: { encoding: 'json', body: JSON.stringify('x'.repeat(5 * MIB)) } })
const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id)

test('an answer ends with the job that makes it 16 MiB; the rest can be had at once', {
  skip: missingReason('postgres'),
}, async () => {
  const { store, schema, dispose } = await openPostgres(urlOf('postgres'))
  try {
    const count = async (): Promise<number> => {
      const [row] = await server(
        `select json_array_length(jobs::json) as count from ${schema}.claim('emails', 'w', 6, 60000)`,
      )
      return Number(row?.count)
    }
    const first = Array.from({ length: 5 }, large)
    await store.operations.push({ jobs: first })
    assert.equal(await count(), 4)
    assert.equal(await count(), 1)
    await store.operations.release({ queue: 'emails', items: first.map(({ id }) => ({ id, fence: 1 })) })
    assert.equal(await count(), 4)
    const more = Array.from({ length: 5 }, large)
    await store.operations.push({ jobs: more })
    const request = { queue: 'emails', worker: 'w', limit: 6, lease: 60_000 }
    const cut = await store.operations.claim(request)
    assert.equal(cut.retryAfter, 0)
    const rest = await store.operations.claim(request)
    assert.deepEqual(ids([...cut.jobs, ...rest.jobs]), [...ids(first).slice(4), ...ids(more)])
  } finally {
    await dispose()
  }
})
