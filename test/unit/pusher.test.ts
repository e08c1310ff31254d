/** Pushes to a store with parts: calls of one `pushMany` that share a call of the store do not wait for each other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pusher } from '../../src/pond/push/pusher.ts'
import { newJobs } from '../support/jobs.ts'
import { storeOf } from './suite.ts'

test('a pushMany of several calls over several parts ends, and each part has its jobs in order', {
  timeout: 20_000,
}, async () => {
  const stored = new Map<string, string[]>()
  const partOf = (id: string) => String(Number.parseInt(id.slice(-2), 16) % 3)
  const store = storeOf(
    {
      push: async ({ jobs }) =>
        jobs.map(({ id }) => {
          stored.set(partOf(id), [...(stored.get(partOf(id)) ?? []), id])
          return { status: 'pushed', id }
        }),
    },
    { parts: { ofJob: ({ id }) => partOf(id), ofClaim: () => '' } },
  )
  const jobs = newJobs(1500)
  const answers = await Promise.all(new Pusher(store, () => {}).pushMany(jobs))
  assert.equal(answers.flat().length, 1500)
  for (const [part, ids] of stored) {
    assert.deepEqual(
      ids,
      jobs.map(({ id }) => id).filter((id) => partOf(id) === part),
    )
  }
})
