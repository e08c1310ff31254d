/** Jobs of every state, with every field. */

import type { Store } from '../../src/store.ts'
import type { Encoded, JobRecord } from '../../src/values/jobs/records.ts'
import { ERROR, newId, recordOf } from '../support/jobs.ts'

const json = (value: unknown): Encoded => ({ encoding: 'json', body: JSON.stringify(value) })
const bytes = (...values: number[]): Encoded => ({ encoding: 'bytes', body: Uint8Array.of(...values) })

/** @param now the store's: jobs that finished long ago would go at once */
export function everyRecord(queue: string, now: number): JobRecord[] {
  const tried = {
    attempt: 2,
    attempts: 5,
    fence: 3,
    startedAt: now - 5000,
    worker: 'w-1',
    error: ERROR,
    log: ['one', 'two'],
  }
  const live: Partial<JobRecord>[] = [
    {},
    { priority: 9, data: bytes(0, 255, 10) },
    { priority: 0, cost: 7, timeout: 60_000, trace: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    { key: 'unique', group: 'tenant 1' },
    {
      ...tried,
      progress: json({ half: true }),
      data: { encoding: 'msgpack', body: Uint8Array.of(0x81, 0xa1, 0x61, 0x01) },
    },
    { state: 'scheduled', dueAt: now + 20_000, key: 'soon' },
    { ...tried, state: 'scheduled', dueAt: now + 365 * 86_400_000, data: json('in a year ✓ \u0000') },
  ]
  const final: Partial<JobRecord>[] = [
    { ...tried, state: 'done', finishedAt: now - 1000, result: json({ ok: [1, 2] }), key: 'unique' },
    { ...tried, state: 'done', finishedAt: now - 500, result: bytes(), error: null },
    { ...tried, state: 'dead', finishedAt: now - 900, attempt: 5, progress: json(3) },
    { state: 'cancelled', finishedAt: now - 800, group: 'tenant 2' },
  ]
  return [...live, ...final].map((given) =>
    recordOf({ id: newId(), queue, pushedAt: now - 9000, dueAt: now - 8000, ...given }),
  )
}

export async function foundIn(store: Store, records: readonly JobRecord[]): Promise<(JobRecord | null)[]> {
  return store.operations.find({ ids: records.map(({ id }) => id) })
}

/** The id of each job of the queue, by state, in the order of the store. */
export async function idsIn(store: Store, queue: string, state: JobRecord['state']): Promise<string[]> {
  const { jobs } = await store.operations.list({ queue, state, limit: 10_000 })
  return jobs.map(({ id }) => id)
}
