/** Jobs that wait for each other, over HTTP. */
import assert from 'node:assert/strict'
import { type Client, isProblem, serveTest } from './client.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

/** Claims the only job of the queue and completes it. */
async function done(client: Client, queue: string, result: unknown): Promise<string> {
  const [job, ...others] = await client.claim(queue, { limit: 10 })
  assert.ok(job)
  assert.deepEqual(others, [])
  const { status } = await client.post(`/v1/queues/${queue}/jobs/${job.id}/complete`, { fence: job.fence, result })
  assert.equal(status, 200)
  return job.id
}

const pushed = ({ body }: { body: Record<string, unknown> }): { id: string; existing: boolean }[] => {
  assert.ok(Array.isArray(body.jobs), JSON.stringify(body))
  return body.jobs
}

serveTest('a graph is pushed, shown, and worked off', async ({ open }) => {
  const client = await open()
  const jobs = [
    { queue: 'sum', data: 'all', after: [1, 2] },
    { queue: 'part', data: 1 },
    { queue: 'part', data: 2, after: [1], priority: 9 },
  ]
  const answer = await client.post('/v1/graphs', { jobs })
  assert.equal(answer.status, 202)
  const [sum = '', one = '', two = ''] = pushed(answer).map(({ id }) => id)
  const { body: blocked } = await client.get(`/v1/jobs/${sum}`)
  assert.deepEqual([blocked.state, blocked.waitsFor], ['blocked', 2])
  const { body: why } = await client.get(`/v1/jobs/${sum}/explain`)
  assert.match(String(why.text), /2 jobs have not ended/)
  const { body: list } = await client.get('/v1/queues/sum/jobs?state=blocked')
  assert.deepEqual(Array.isArray(list.jobs) && list.jobs.map(({ id, waitsFor }) => [id, waitsFor]), [[sum, 2]])
  const { body: graph } = await client.get(`/v1/jobs/${one}/graph`)
  assert.ok(Array.isArray(graph.nodes))
  assert.deepEqual(graph.nodes[0], {
    ...{ id: one, queue: 'part', state: 'waiting', onDead: 'cancel', parents: [] },
    children: [sum, two].toSorted(),
  })
  assert.deepEqual([graph.nodes.length, graph.left, graph.more], [3, 3, false])

  assert.equal(await done(client, 'part', { n: 1 }), one)
  assert.equal(await done(client, 'part', null), two)
  const [last] = await client.claim('sum')
  assert.equal(last?.id, sum)
  const { body: parents } = await client.get(`/v1/jobs/${sum}/parents`)
  const all = [
    { id: one, queue: 'part', state: 'done', result: { n: 1 } },
    { id: two, queue: 'part', state: 'done' },
  ].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  assert.deepEqual(parents, { jobs: all })
  const { body: page } = await client.get(`/v1/jobs/${sum}/parents?limit=1`)
  assert.deepEqual(page, { jobs: [all[0]], next: all[0]?.id })
  assert.deepEqual((await client.get(`/v1/jobs/${sum}/parents?after=${page.next}`)).body, { jobs: [all[1]] })
})

serveTest('a graph that is sent again with its key stores nothing twice', async ({ open }) => {
  const client = await open()
  const body = {
    jobs: [
      { queue: 'q', data: 1 },
      { queue: 'q', data: 2, after: [0] },
    ],
  }
  const push = async () => pushed(await client.post('/v1/graphs', body, { 'idempotency-key': 'k1' }))
  const first = await push()
  assert.deepEqual(
    await push(),
    first.map(({ id }) => ({ id, existing: true })),
  )
  assert.equal(new Set(first.map(({ id }) => id)).size, 2)
})

serveTest('single pushes wait, too; what cannot be is refused, and nothing is stored', async ({ open }) => {
  const client = await open({ maxQueues: 5 })
  const parent = await client.push('q', 1)
  const child = await client.push('q', 2, { after: [parent], onDead: 'run' })
  await client.push('q', 3, { partOf: parent })
  assert.equal((await client.get(`/v1/jobs/${child}`)).body.waitsFor, 2)
  const batch = await client.post('/v1/queues/q/batches', { jobs: [{ data: 4, after: [child] }] })
  assert.equal(await client.state(pushed(batch)[0]?.id ?? ''), 'blocked')

  const graph = (...jobs: object[]) =>
    client.post('/v1/graphs', { jobs: jobs.map((job) => ({ queue: 'new', data: 1, ...job })) })
  isProblem(await client.post('/v1/queues/q/jobs', { data: 1, after: [UNKNOWN] }), 409, 'ParentUnknown')
  isProblem(await client.post('/v1/queues/q/batches', { jobs: [{ data: 1, partOf: UNKNOWN }] }), 409, 'ParentUnknown')
  isProblem(await graph({}, { after: [0, UNKNOWN] }), 409, 'ParentUnknown')
  isProblem(await graph({ after: [1] }, { after: [0] }), 400, 'GraphCycle')
  isProblem(await graph({ after: [1] }), 400, 'InvalidOption')
  isProblem(await graph(...Array(5001).fill({})), 413, 'PayloadTooLarge')
  isProblem(await graph({ after: [], onDead: 'run' }), 400, 'InvalidOption')
  isProblem(await graph({ onDead: 'wait' }), 422, 'InvalidOption')
  isProblem(await graph({ after: [-1] }), 422, 'InvalidOption')
  isProblem(await graph({ delay: 1, runAt: 1 }), 422, 'InvalidOption')
  isProblem(await graph({ queue: '-' }), 422, 'InvalidOption')
  const queues = Array.from({ length: 101 }, (_, at) => ({ queue: `q${at}` }))
  isProblem(await graph(...queues), 400, 'InvalidOption')
  isProblem(await graph(...queues.slice(0, 10)), 503, 'TooManyQueues')
  isProblem(await client.get(`/v1/jobs/${UNKNOWN}/graph`), 404, 'JobUnknown')
  isProblem(await client.get(`/v1/jobs/${UNKNOWN}/parents`), 404, 'JobUnknown')
  const { body } = await client.get('/v1/queues')
  assert.ok(Array.isArray(body.queues))
  for (const { queue, totals } of body.queues) assert.equal(totals.pushed, queue === 'q' ? 4 : 0, queue)
})
