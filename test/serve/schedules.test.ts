/** Schedules over HTTP: declared by any language, held and run by operators. */
import assert from 'node:assert/strict'
import { isProblem, serveTest } from './client.ts'

const NIGHTLY = { name: 'reports/nightly', when: '0 7 * * MON-FRI', queue: 'reports', data: { kind: 'day' } }
const PATH = `/v1/schedules/${encodeURIComponent(NIGHTLY.name)}`

serveTest('a schedule is declared, shown, changed, run and removed', async ({ open }) => {
  const client = await open()
  const declare = async (given: object) => (await client.post('/v1/schedules', { ...NIGHTLY, ...given })).body
  assert.deepEqual(await declare({ tz: 'Europe/Paris' }), { name: NIGHTLY.name, outcome: 'created' })
  assert.deepEqual(await declare({ tz: 'Europe/Paris' }), { name: NIGHTLY.name, outcome: 'same' })
  assert.equal((await declare({ tz: 'UTC', from: '2026-01-01T00:00:00Z', jitter: 1000 })).outcome, 'changed')
  assert.equal((await declare({ tz: 'Europe/Paris' })).outcome, 'kept', 'an older version does not come back')

  const { body: shown } = await client.get(PATH)
  assert.equal(shown.from, '2026-01-01T00:00:00.000Z')
  assert.deepEqual([shown.queue, shown.tz, shown.jitter, shown.declared], ['reports', 'UTC', 1000, true])
  assert.equal('data' in shown, false)
  await client.post('/v1/schedules', { ...NIGHTLY, name: 'z' })
  const { body: first } = await client.get('/v1/schedules?limit=1')
  assert.equal(first.next, NIGHTLY.name)
  const { body: rest } = await client.get(`/v1/schedules?after=${encodeURIComponent(NIGHTLY.name)}`)
  assert.deepEqual([Array.isArray(rest.schedules) && rest.schedules.length, rest.next], [1, undefined])

  assert.deepEqual((await client.ask('PATCH', PATH, { paused: true })).body, { name: NIGHTLY.name, paused: true })
  assert.equal((await client.get(PATH)).body.paused, true)
  const { body: ran } = await client.post(`${PATH}/run`, {})
  const [job] = await client.claim('reports')
  assert.deepEqual([job?.id, job?.data], [ran.id, NIGHTLY.data])
  assert.equal((await client.ask('PATCH', PATH, { paused: false })).status, 200)
  assert.equal((await client.ask('DELETE', PATH)).status, 200)
  for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { paused: true }]] as const) {
    isProblem(await client.ask(method, PATH, body), 404)
  }
  isProblem(await client.post(`${PATH}/run`, {}), 404)
})

serveTest('a preview is words and times; bad lines are refused', async ({ open }) => {
  const client = await open()
  const query = new URLSearchParams({ when: '0 7 * * *', tz: 'Europe/Paris', count: '2' })
  const { body } = await client.get(`/v1/schedule-preview?${query}`)
  assert.equal(body.words, 'At 07:00 (Europe/Paris)')
  assert.equal(Array.isArray(body.times) && body.times.length, 2)
  const refused = async (status: number, given: object) =>
    isProblem(await client.post('/v1/schedules', { ...NIGHTLY, ...given }), status, 'InvalidOption')
  const bad = [{ when: '0 0 30 2 *' }, { when: 'every 0s' }, { tz: 'Mars/Olympus' }, { from: 2, until: 1 }]
  for (const given of bad) await refused(400, given)
  for (const given of [{ missed: 'never' }, { nothing: 1 }, { name: '-' }, { jitter: '5s' }]) await refused(422, given)
})
