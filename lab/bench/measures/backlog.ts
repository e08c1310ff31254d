/**
 * Whether claims, pushes and looks grow slower with the backlog: the same calls on a small and a large one, in turn, in one process.
 * Through the Store interface, so that nothing is measured but the store. What is claimed is released again.
 */

import type { NewJob, Store } from '../../../src/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { newId } from '../../../src/values/ids.ts'
import type { BacklogTask, Measure, Outcome } from '../measure.ts'
import { median, quantile } from '../statistics.ts'
import { LOOKS, look } from './looks.ts'
import { rate } from './rounds.ts'

const QUEUE = 'backlog'
const FILL = 5000
const CLAIMS = [1, 50, 500]
const SIZES = ['small', 'large'] as const
type Size = (typeof SIZES)[number]
/** Calls that only warm the code up. */
const WARMING = 20

export const backlog: Measure<BacklogTask> = async (task, dir) => {
  const stores: Record<Size, Store> = {
    small: await openBacklog(task, `${dir}/small.db`),
    large: await openBacklog(task, `${dir}/large.db`),
  }
  await fill(stores.small, task.small)
  const outcome: Outcome = { fill: (await rate(task.large, () => fill(stores.large, task.large))).perSecond }
  for (const limit of CLAIMS) {
    const times = await alternate(task.samples, (size) => claim(stores[size], limit))
    for (const size of SIZES) {
      outcome[`claim ${limit} ${size}`] = median(times[size])
      outcome[`claim ${limit} ${size} p99`] = quantile(times[size], 0.99)
    }
  }
  for (const batch of [1, 500]) {
    const times = await alternate(task.samples, (size) => push(stores[size], batch))
    for (const size of SIZES) outcome[`push ${batch} ${size}`] = median(times[size])
  }
  const ids = { small: await someId(stores.small), large: await someId(stores.large) }
  for (const what of LOOKS) {
    const times = await alternate(task.samples, (size) => look(stores[size], QUEUE, what, ids[size]))
    for (const size of SIZES) outcome[`${what} ${size}`] = median(times[size])
  }
  await Promise.all(SIZES.map((size) => stores[size].close()))
  return outcome
}

async function alternate(samples: number, time: (size: Size) => Promise<number>): Promise<Record<Size, number[]>> {
  const times: Record<Size, number[]> = { small: [], large: [] }
  for (let i = -WARMING; i < samples; i++) {
    for (const size of SIZES) {
      const took = await time(size)
      if (i >= 0) times[size].push(took)
    }
  }
  return times
}

async function openBacklog({ durability }: BacklogTask, path: string): Promise<Store> {
  const store = await openStore(durability === 'none' ? 'memory:' : `sqlite:${path}?sync=${durability}`, {})
  await store.configure({ queue: QUEUE, capacity: null })
  return store
}

async function fill(store: Store, count: number): Promise<void> {
  let next = 0
  const loop = async () => {
    while (next < count) {
      const from = next
      next = Math.min(count, next + FILL)
      await store.push(newJobs(from, next))
    }
  }
  await Promise.all([loop(), loop()])
}

/** Milliseconds. */
async function claim(store: Store, limit: number): Promise<number> {
  const began = performance.now()
  const { jobs } = await store.claim({ queue: QUEUE, worker: 'bench', limit, lease: 30_000 })
  const took = performance.now() - began
  if (jobs.length !== limit) throw new Error(`claimed ${jobs.length} of ${limit}`)
  await store.release(
    QUEUE,
    jobs.map(({ id, fence }) => ({ id, fence })),
  )
  return took
}

/** Of the last of a page, which is not what was claimed and released just before. */
async function someId(store: Store): Promise<string> {
  const page = await store.admin.list({ queue: QUEUE, state: 'waiting', limit: 100 })
  return page.at(-1)?.id ?? newId()
}

async function push(store: Store, count: number): Promise<number> {
  const jobs = newJobs(0, count)
  const began = performance.now()
  await store.push(jobs)
  return performance.now() - began
}

function newJobs(from: number, to: number): NewJob[] {
  const jobs: NewJob[] = []
  for (let n = from; n < to; n++) {
    jobs.push({
      id: newId(),
      queue: QUEUE,
      priority: 4,
      delay: 0,
      runAt: null,
      key: null,
      group: null,
      attempts: 10,
      timeout: null,
      trace: null,
      data: { encoding: 'json', body: `{"n":${n}}` },
    })
  }
  return jobs
}
