/** What a claim takes beside ten thousand groups that may not start a job, at the store's interface. In pairs, in turns. */

import type { Store } from '../../../src/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { atMost } from '../../bench/row.ts'
import { median } from '../../bench/statistics.ts'
import { ms, type Part } from '../part.ts'
import { newJobs } from '../store-jobs.ts'

const BLOCKED = 10_000
const ROUNDS = 500
const LEASE = 3_600_000

const claim = (store: Store, queue: string, limit: number) => store.claim({ queue, worker: 'lab', limit, lease: LEASE })

async function fill(store: Store, queue: string, blocked: number): Promise<void> {
  await store.configure({ queue, groupRunning: 1 })
  const groups = Array.from({ length: blocked }, (_, n) => `blocked-${n}`)
  for (let at = 0; at < blocked; at += 250) {
    // One runs, one waits.
    await store.push(newJobs(queue, [...groups.slice(at, at + 250), ...groups.slice(at, at + 250)]))
  }
  for (let held = 0; held < blocked; ) held += (await claim(store, queue, 1000)).jobs.length
  for (let at = 0; at < ROUNDS; at += 500) await store.push(newJobs(queue, Array(Math.min(500, ROUNDS)).fill('free')))
}

/** One claim of one job, in ms; the job is completed afterwards. */
async function timed(store: Store, queue: string): Promise<number> {
  const from = performance.now()
  const { jobs } = await claim(store, queue, 1)
  const took = performance.now() - from
  const [job] = jobs
  if (job?.group !== 'free') throw new Error('the group that is not blocked had no turn')
  await store.complete(queue, [{ ...job, result: null }])
  return took
}

export const blocked: Part = {
  title: `A claim beside ${BLOCKED} blocked groups`,
  head: ['blocked groups', 'claims', 'usual', 'beside them', 'ratio'],
  stores: ['memory', 'sqlite', 'postgres', 'redis'],
  async measure(_, fresh) {
    const store = await openStore(await fresh(), {})
    try {
      await fill(store, 'usual', 0)
      await fill(store, 'blocked', BLOCKED)
      const times: Record<string, number[]> = { usual: [], blocked: [] }
      for (let round = 0; round < ROUNDS; round++) {
        const order = round % 2 === 0 ? ['usual', 'blocked'] : ['blocked', 'usual']
        for (const queue of order) times[queue]?.push(await timed(store, queue))
      }
      const usual = median(times.usual ?? [])
      const beside = median(times.blocked ?? [])
      const cells = [`${BLOCKED}`, `2 × ${ROUNDS}`, ms(usual), ms(beside), (beside / usual).toFixed(2)]
      return [{ cells, bars: [atMost(beside / usual, 2, ' ×')] }]
    } finally {
      await store.close()
    }
  },
}
