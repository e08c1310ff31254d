/** One of 100 endings of a request cannot be stored: the others are, and the answer says so of each. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { serve } from '../../src/serve/index.ts'
import { PLACES } from '../faults/refusing.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Claim, Client, isProblem, serveTest } from './client.ts'

const COUNT = 100
const BAD = 57

async function served(t: TestContext, url: string): Promise<Client> {
  // The store's refusals are reported.
  const service = await serve(url, { maxPayload: 4_000_000, maxBody: 8_000_000, onError: () => {} })
  after(t, () => service.close({ timeout: 100 }))
  after(t, () => service.stop())
  return new Client(service)
}

async function claimed(client: Client): Promise<Claim[]> {
  const jobs = Array.from({ length: COUNT }, (_, n) => ({ data: n }))
  assert.equal((await client.post('/v1/queues/q/batches', { jobs })).status, 202)
  const claims: Claim[] = []
  while (claims.length < COUNT) claims.push(...(await client.claim('q', { limit: COUNT })))
  return claims
}

const counts = async (client: Client): Promise<unknown> => (await client.get('/v1/queues/q')).body.counts

for (const [name, { skip, place }] of Object.entries(PLACES)) {
  test(`settle on ${name}`, { skip }, async (t) => {
    const given = await place(t)
    if (given === undefined) return
    const { bad, code, isShort, url } = given
    const client = await served(t, url)
    const claims = await claimed(client)
    const holds = claims.map(({ id, fence }) => ({ id, fence }))
    const complete = holds.slice(0, 60).map((hold, n) => ({ ...hold, result: n === BAD ? bad : n }))
    const fail = holds.slice(60).map((hold, n) => ({ ...hold, retry: false, error: { message: n === 5 ? bad : 'no' } }))
    // An error is cut to a length that this store takes.
    const { status, body } = await client.post('/v1/queues/q/settle', isShort ? { complete, fail } : { complete })
    assert.equal(status, 200, JSON.stringify(body).slice(0, 1000))
    const outcomes = [
      ...complete.map((_, n) => (n === BAD ? 'error' : 'ok')),
      ...(isShort ? fail.map((_, n) => (n === 5 ? 'error' : 'dead')) : []),
    ]
    assert.deepEqual([body.complete, body.fail].flat(), outcomes)
    assert.ok(Array.isArray(body.problems))
    const told = body.problems.map((each) => [each.id, each.code, each.retryable])
    const bads = [claims[BAD], ...(isShort ? [claims[65]] : [])].map((claim) => [claim?.id, code, false])
    assert.deepEqual(told, bads)
    const [{ detail }] = body.problems
    assert.ok(typeof detail === 'string' && detail.length > 10 && !detail.includes('not this one'), detail)
    const instead = holds.filter(({ id }) => told.some(([other]) => other === id))
    const given_up = { fail: instead.map((hold) => ({ ...hold, retry: false, error: { message: 'no result' } })) }
    const second = await client.post('/v1/queues/q/settle', given_up)
    assert.deepEqual(second.body.fail, Array(told.length).fill('dead'))
    const one = await client.post(`/v1/queues/q/jobs/${claims[0]?.id}/complete`, { fence: 1, result: bad })
    assert.ok([409, 413, 422].includes(one.status), JSON.stringify(one.body))
    await until(async () => JSON.stringify(await counts(client)).includes(`"done":59`), '59 are done')
  })
}

serveTest('a result that is too large, or that JSON cannot say, is an error of its own ending', async ({ open }) => {
  const client = await open({ maxPayload: 1000 })
  const claims = await claimed(client)
  const complete = claims.map(({ id, fence }, n) => ({ id, fence, result: n === BAD ? 'x'.repeat(2000) : n }))
  const { status, body } = await client.post('/v1/queues/q/settle', { complete })
  assert.equal(status, 200)
  assert.deepEqual(
    body.complete,
    claims.map((_, n) => (n === BAD ? 'error' : 'ok')),
  )
  assert.ok(Array.isArray(body.problems))
  assert.deepEqual([body.problems.length, body.problems[0].code], [1, 'PayloadTooLarge'])
  assert.match(body.problems[0].detail, /result of complete\.57/)
})

serveTest('a store that is away: none is stored, and the answer is 503', async ({ open }) => {
  const client = await open()
  const claims = await claimed(client)
  await client.served.close()
  const complete = claims.map(({ id, fence }) => ({ id, fence }))
  isProblem(await client.post('/v1/queues/q/settle', { complete }), 503, 'Closed')
})
