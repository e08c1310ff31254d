/** Jobs that are due after the year 9999, which RFC 3339 has no text for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/pond/millpond.ts'
import * as schemas from '../../src/serve/api-schemas.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { check } from '../../src/serve/json-schema.ts'
import { Service } from '../../src/serve/service.ts'
import { openStore } from '../../src/stores/open.ts'
import { answered, isProblem, serveTest } from './client.ts'

const LAST = '9999-12-31T23:59:59.999Z'

test('a process of the library pushes such a job: its times are told as the schema says', async () => {
  const onError = assert.ifError
  const store = await openStore('memory:', {})
  const pond = new Millpond(store, LIMITS.maxPayload)
  const service = new Service({ store, pond, limits: LIMITS, tokens: [], hosts: [], onError })
  try {
    const { id } = await pond.queue('q').push(1, { runAt: 8.64e15 })
    const get = async (path: string) =>
      (await answered(await service.handle(new Request(`http://localhost${path}`)))).body
    const job = await get(`/v1/jobs/${id}`)
    assert.deepEqual(check(job, schemas.job), [])
    assert.equal(job.dueAt, LAST)
    const list = await get('/v1/queues/q/jobs?state=scheduled')
    assert.deepEqual(check(list, schemas.jobList), [])
    assert.ok(Array.isArray(list.jobs) && list.jobs[0].dueAt === LAST)
  } finally {
    await service.drained()
    await pond.close()
  }
})

serveTest('over HTTP no such job is taken, and the last moment before is told as it was given', async ({ open }) => {
  const client = await open()
  const push = (runAt: unknown) => client.post('/v1/queues/q/jobs', { data: 1, runAt })
  const last = Date.parse(LAST)
  for (const runAt of [last + 1, 8.64e15, '9999-12-31T23:59:59.999-00:01', '+010000-01-01T00:00:00Z']) {
    isProblem(await push(runAt), 422, 'InvalidOption')
  }
  for (const runAt of [last, LAST]) {
    const { body } = await push(runAt)
    assert.equal((await client.get(`/v1/jobs/${String(body.id)}`)).body.dueAt, LAST)
  }
})
