/**
 * Whether claims, pushes and looks grow slower with the backlog: the same calls on a small and a large one, in turn, in one process.
 * Nothing is measured but the store. What is claimed is released again.
 */
import { median, quantile } from '../../statistics.ts'
import { Calls, LOOKS, newJobs } from '../../store.ts'
import type { Measure, Outcome } from '../task.ts'
import { loops } from './push.ts'
import { rate } from './rounds.ts'

const QUEUE = 'backlog'
const FILL = 5000
const CLAIMS = [1, 50, 500]
const SIZES = ['small', 'large'] as const
type Size = (typeof SIZES)[number]
/** Calls that only warm the code up. */
const WARMING = 20

export const calls: Measure<'calls'> = async ({ url, small, large, samples }) => {
  const stores: Record<Size, Calls> = {
    small: await Calls.open(url.replace('.db', '-small.db'), QUEUE),
    large: await Calls.open(url, QUEUE),
  }
  await fill(stores.small, small)
  const outcome: Outcome = { fill: (await rate(large, () => fill(stores.large, large))).perSecond }
  for (const limit of CLAIMS) {
    const times = await alternate(samples, (size) => claim(stores[size], limit))
    for (const size of SIZES) {
      outcome[`claim ${limit} ${size}`] = median(times[size])
      outcome[`claim ${limit} ${size} p99`] = quantile(times[size], 0.99)
    }
  }
  for (const batch of [1, 500]) {
    const times = await alternate(samples, (size) => push(stores[size], batch))
    for (const size of SIZES) outcome[`push ${batch} ${size}`] = median(times[size])
  }
  const ids = { small: await stores.small.someId(), large: await stores.large.someId() }
  for (const what of LOOKS) {
    const times = await alternate(samples, (size) => stores[size].look(what, ids[size]))
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

const fill = (store: Calls, count: number): Promise<void> =>
  loops(2, count, FILL, (items) => store.push(newJobs(QUEUE, Array(items.length).fill(null))))

/** Milliseconds. */
async function claim(store: Calls, limit: number): Promise<number> {
  const began = performance.now()
  const jobs = await store.claim('bench', limit, 30_000)
  const took = performance.now() - began
  if (jobs.length !== limit) throw new Error(`claimed ${jobs.length} of ${limit}`)
  await store.release(jobs)
  return took
}

async function push(store: Calls, count: number): Promise<number> {
  const jobs = newJobs(QUEUE, Array(count).fill(null))
  const began = performance.now()
  await store.push(jobs)
  return performance.now() - began
}
