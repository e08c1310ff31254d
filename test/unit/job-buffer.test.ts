import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { Attempt } from '../../src/worker/attempt.ts'
import { JobBuffer } from '../../src/worker/job-buffer.ts'
import { NULL } from '../support/jobs.ts'

/** Attempts of one claim, which arrived `age` ms ago. */
function claimed(age: number, jobs: Record<string, number>): Attempt[] {
  const at = performance.now() - age
  const arrival = { now: 0, at, heldUntil: at + 30_000 }
  return Object.entries(jobs).map(([id, priority]) => {
    const rest = {
      fence: 1,
      attempt: 1,
      attempts: 1,
      group: null,
      key: null,
      timeout: null,
      trace: null,
      pushedAt: 0,
      dueAt: 0,
    }
    const job: ClaimedJob = { id, priority, data: NULL, ...rest }
    return new Attempt(job, arrival)
  })
}

const ids = (attempts: Iterable<Attempt>): string[] => [...attempts].map(({ claimed: { id } }) => id)

/** @returns what is taken out when the first window is over */
function takenOut(
  window: number,
  claims: Attempt[][],
  start: (buffer: JobBuffer) => void = () => {},
): Promise<{ late: string[]; left: string[] }> {
  return new Promise((resolve) => {
    // The buffer's own timer keeps no process alive.
    const alive = setTimeout(() => {}, 60_000)
    const late = (taken: Attempt[]) => {
      buffer.close()
      clearTimeout(alive)
      resolve({ late: ids(taken), left: ids(buffer) })
    }
    const buffer = new JobBuffer(window, () => start(buffer), late)
    for (const attempts of claims) buffer.add(attempts)
    buffer.watch()
  })
}

test('what comes behind a late job goes back with it, so it does not start before it', async () => {
  const taken = await takenOut(1000, [claimed(2000, { a: 4, b: 4 }), claimed(0, { c: 4, d: 4 })])
  assert.deepEqual(taken, { late: ['a', 'b', 'c', 'd'], left: [] })
})

test('what comes before a late job stays', async () => {
  const taken = await takenOut(1000, [claimed(2000, { a: 4 }), claimed(0, { urgent: 9, b: 4, later: 0 })])
  assert.deepEqual(taken, { late: ['a', 'b', 'later'], left: ['urgent'] })
})

test('what is ready when the window is over starts instead of being given back', async () => {
  const start = (buffer: JobBuffer) => {
    const { first } = buffer
    if (first?.claimed.id === 'a') buffer.remove(first)
  }
  const taken = await takenOut(1000, [claimed(2000, { a: 4, b: 4 })], start)
  assert.deepEqual(taken, { late: ['b'], left: [] })
})
