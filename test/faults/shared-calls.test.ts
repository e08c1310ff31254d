/**
 * Whoever makes a shared call is killed (SIGKILL) in the middle of it: another process makes it, and all who wait are
 * answered within the call's time limit.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scratch } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { backend, MODES } from './backends.ts'
import { type Child, start } from './harness.ts'

const ROUNDS = depth(1, 6)
/** Of the calls, in ms: a dead holder is noticed within a third of it. */
const TIMEOUT = 6000
const CREW = 3

const places = [
  { name: 'sqlite', place: async (t: Parameters<typeof scratch>[0]) => `sqlite:${scratch(t)}/calls.db` },
  ...MODES.filter(({ transaction }) => !transaction).map((mode) => ({
    name: mode.name,
    place: async (t: Parameters<typeof scratch>[0]) => (await backend(t, mode))?.url,
  })),
]

for (const { name, place } of places) {
  test(`${name}: a shared call outlives the process that makes it`, async (t) => {
    const url = await place(t)
    if (url === undefined) return
    for (let round = 0; round < ROUNDS; round++) {
      const crew: Child[] = Array.from({ length: CREW }, () =>
        start(t, 'shared-caller', { url, key: `k${round}`, timeout: TIMEOUT }),
      )
      await Promise.all(crew.map((caller) => caller.hear('aboard')))
      const holder = await whoCalls(crew)
      holder.kill('SIGKILL')
      await holder.exited
      const others = crew.filter((caller) => caller !== holder)
      const next = await whoCalls(others)
      next.send({ kind: 'answer' })
      for (const caller of others) {
        // Within the time limit: else it would say `failed`, and the test end there.
        const { answer } = await caller.hear('answered')
        assert.equal(answer, `the answer to k${round}`)
      }
      assert.equal(crew.flatMap((caller) => caller.said('called')).length, 2, 'one call by each holder')
      for (const caller of others) {
        caller.kill('SIGKILL')
        await caller.exited
      }
    }
  })
}

async function whoCalls(crew: readonly Child[]): Promise<Child> {
  let found: Child | undefined
  await until(() => {
    found = crew.find((caller) => caller.said('called').length > 0)
    const failed = crew.flatMap((caller) => caller.said('failed'))
    assert.deepEqual(failed, [])
    return found !== undefined
  }, 'one of them makes the call')
  assert.ok(found)
  return found
}
