/** Claims that hold a job whose payload cannot be read: it fails, and the others are handed out, also when the store cannot be told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/pond/millpond.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { Service } from '../../src/serve/service.ts'
import { openStore } from '../../src/stores/open.ts'
import { newJob } from '../support/jobs.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { answered } from './client.ts'

const job = (body: string) => newJob({ attempts: 10, data: { encoding: 'json', body } })

/** The data of the jobs in a claim of three of which the second is unreadable. @returns it, and the state of the second */
async function claimed(meddling: Meddling, unreadable = '{'): Promise<[unknown[], string | undefined]> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const store = meddled(await openStore('memory:', {}), meddling)
  const pond = new Millpond(store, LIMITS.maxPayload)
  const service = new Service({ store, pond, limits: LIMITS, tokens: [], hosts: [], onError })
  try {
    const jobs = [job('1'), job(unreadable), job('3')]
    await store.operations.push({ jobs })
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"limit":10}' }
    const { status, body } = await answered(
      await service.handle(new Request('http://localhost/v1/queues/q/claims', init)),
    )
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(errors, [])
    assert.ok(Array.isArray(body.jobs))
    const [record] = await store.operations.find({ ids: [jobs[1]?.id ?? ''] })
    return [body.jobs.map(({ data }) => data), record?.state]
  } finally {
    await service.drained()
    await pond.close()
  }
}

test('it fails as in a worker, and the others are handed out', async () => {
  assert.deepEqual(await claimed({}), [[1, 3], 'scheduled'])
})

test('so does one that is nested deeper than an answer can be', async () => {
  const nested = '['.repeat(100_000) + ']'.repeat(100_000)
  assert.deepEqual(await claimed({}, nested), [[1, 3], 'scheduled'])
})

test('where the store does not hear of it, the others are handed out all the same, and its lease runs', async () => {
  const fail = () => Promise.reject(new Error('away'))
  assert.deepEqual(await claimed({ fail }), [[1, 3], 'running'])
})
