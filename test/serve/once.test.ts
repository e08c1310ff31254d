/** What a key does beyond one live job, over HTTP. */
import assert from 'node:assert/strict'
import { isProblem, serveTest } from './client.ts'

serveTest('a push replaces the job with its key; without a key, or misspelt, it is refused', async ({ open }) => {
  const client = await open()
  const options = { key: 'k', delay: 60_000, once: { replace: true, maxWait: 90_000, whenRunning: 'follow' } }
  const id = await client.push('q', 1, options)
  assert.equal(await client.push('q', 2, { ...options, delay: 0 }), id)
  const claimed = await client.claim('q', { limit: 10 })
  assert.deepEqual(
    claimed.map((job) => [job.id, job.data]),
    [[id, 2]],
  )

  const refused = async (status: number, given: object) =>
    isProblem(await client.post('/v1/queues/q/jobs', { data: 3, ...given }), status, 'InvalidOption')
  await refused(422, { key: 'k', once: { replaced: true } })
  await refused(422, { key: 'k', replace: true })
  await refused(400, { once: { for: 1000 } })
  await refused(400, { key: 'k', once: { since: 'push' } })
})
