/** Jobs that another program wrote wrongly: each is told of with what can be read of it, and hides no other. */
import assert from 'node:assert/strict'
import { Millpond } from '../../src/pond/millpond.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { Service } from '../../src/serve/service.ts'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import type { Encoded } from '../../src/values/jobs/records.ts'
import { answered } from '../serve/client.ts'
import { newJob } from '../support/jobs.ts'
import { onEachStore, type Place, refused } from './suite.ts'

const json = (body: string): Encoded => ({ encoding: 'json', body })
const SECRET = 'canary'
const GOOD = json('"good"')
/** No JSON, no MessagePack, and JSON that nobody could write down again. */
const BAD: readonly Encoded[] = [
  json(`"${SECRET}`),
  { encoding: 'msgpack', body: Uint8Array.of(0xc1) },
  json(`${'['.repeat(5000)}${']'.repeat(5000)}`),
]

const job = (data: Encoded) => newJob({ attempts: 10, data })

async function withPond(place: Place, check: (pond: Millpond, store: Store) => Promise<void>): Promise<void> {
  const store = await openStore(place.url, {})
  const pond = new Millpond(store, LIMITS.maxPayload)
  try {
    await check(pond, store)
  } finally {
    await pond.close({ timeout: 100 })
  }
}

onEachStore('undecodable', {
  'a list has all jobs, and says which cannot be read': (place) =>
    withPond(place, async (pond, store) => {
      const jobs = [GOOD, ...BAD, GOOD].map(job)
      await store.operations.push({ jobs })
      const listed = await pond.queue('q').jobs('waiting')
      assert.deepEqual(
        listed.map(({ id, data, undecodable }) => ({ id, data, undecodable })),
        jobs.map(({ id, data }) =>
          data === GOOD ? { id, data: 'good', undecodable: [] } : { id, data: undefined, undecodable: ['data'] },
        ),
      )
      const info = await pond.job(jobs[1]?.id ?? '')
      assert.deepEqual([info?.state, info?.attempts, info?.undecodable], ['waiting', 10, ['data']])
      assert.deepEqual((await pond.queue('q').stats()).counts.waiting, 5)
    }),

  'progress and results that cannot be read are told in the same way': (place) =>
    withPond(place, async (pond, store) => {
      const [bad] = BAD
      assert.ok(bad)
      const { id } = job(GOOD)
      await store.operations.push({ jobs: [{ ...job(GOOD), id }] })
      const [claim] = (await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: 60_000 })).jobs
      assert.ok(claim)
      await store.operations.extend({ queue: 'q', lease: 60_000, items: [{ ...claim, progress: bad }] })
      assert.deepEqual((await pond.job(id))?.undecodable, ['progress'])
      await store.operations.complete({ queue: 'q', items: [{ ...claim, result: bad }] })
      const [done] = await pond.queue('q').jobs('done')
      assert.deepEqual([done?.data, done?.undecodable], ['good', ['progress', 'result']])
      const error = await refused(pond.result(id), 'PayloadNotDecodable')
      assert.ok(!error.message.includes(SECRET) && error.cause === undefined, error.message)
    }),

  'over HTTP: in lists, of one job, and as events': (place) =>
    withPond(place, async (pond, store) => {
      const errors: unknown[] = []
      const onError = (error: unknown) => errors.push(error)
      const service = new Service({ store, pond, limits: LIMITS, tokens: [], hosts: [], onError })
      try {
        const jobs = [GOOD, ...BAD, GOOD].map(job)
        await store.operations.push({ jobs })
        const get = (path: string, headers = {}) => service.handle(new Request(`http://localhost${path}`, { headers }))
        const list = await answered(await get('/v1/queues/q/jobs?state=waiting'))
        assert.equal(list.status, 200)
        assert.ok(Array.isArray(list.body.jobs))
        assert.deepEqual(
          list.body.jobs.map(({ id, data, undecodable }) => [id, data, undecodable]),
          jobs.map(({ id, data }) => (data === GOOD ? [id, 'good', undefined] : [id, undefined, ['data']])),
        )
        const one = await answered(await get(`/v1/jobs/${jobs[1]?.id}`))
        assert.deepEqual([one.status, one.body.state, one.body.undecodable], [200, 'waiting', ['data']])
        const stream = await get(`/v1/jobs/${jobs[1]?.id}`, { accept: 'text/event-stream' })
        const events = stream.body?.getReader()
        const { value } = (await events?.read()) ?? {}
        assert.match(new TextDecoder().decode(value), /^event: state\ndata: .*"undecodable":\["data"\]/)
        await events?.cancel()
        assert.deepEqual(errors, [])
      } finally {
        await service.drained()
      }
    }),
})
