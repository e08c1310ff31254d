/** A backlog of many groups, each of which runs two jobs at once: how fast it is worked off, by calls of the store and by workers. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Millpond, QueueOptions } from '../../../src/index.ts'
import { atLeast, type Bar, compact } from '../../bars.ts'
import { Calls, newJobs } from '../../store.ts'
import { drained, withCrew, withPond } from '../crew.ts'
import type { Part, StoreName } from '../part.ts'
import { pushJobs } from '../push.ts'
import { QUEUE } from '../work.ts'

export const JOBS = 1_000_000
const GROUPS = [1000, 10_000, 100_000]
/** The bars are for this many groups. */
export const JUDGED = 10_000
export const LEAST: Record<StoreName, number> = { memory: 200_000, sqlite: 30_000, postgres: 12_000, redis: 25_000 }
const PROCESSES = 2
const CONCURRENCY = 500
/** Claims under way at once, and jobs of each, where the store is called without a worker. */
const CLAIMERS = 2
const CLAIMED = 500
const PUSHED = 1000
/** Jobs of each group before the windows begin. */
const FIRST_TURNS = 3
const options: QueueOptions = { capacity: null, limits: { group: { running: 2 } } }

/** @returns jobs a second, by claims and completions alone */
async function byCalls(url: string, jobs: number, groups: number): Promise<number> {
  const store = await Calls.open(url, QUEUE, 2)
  try {
    for (let at = 0; at < jobs; at += PUSHED) {
      const names = Array.from({ length: Math.min(PUSHED, jobs - at) }, (_, n) => `g${(at + n) % groups}`)
      await store.push(newJobs(QUEUE, names))
    }
    let done = 0
    const claimer = async (worker: string) => {
      while (done < jobs) {
        const claimed = await store.claim(worker, CLAIMED)
        if (claimed.length === 0) continue
        await store.complete(claimed)
        done += claimed.length
      }
    }
    const from = performance.now()
    await Promise.all(Array.from({ length: CLAIMERS }, (_, n) => claimer(`lab-${n}`)))
    return (jobs / (performance.now() - from)) * 1000
  } finally {
    await store.close()
  }
}

/** A backlog and its workers, for as long as the measurement takes, which begins with the end of the pause. */
const withBacklog = <T>(
  url: string,
  jobs: number,
  groups: number,
  measure: (pond: Millpond) => Promise<T>,
): Promise<T> =>
  withPond(url, async (pond) => {
    const queue = pond.queue(QUEUE, options)
    await queue.pause()
    await pushJobs(pond, options, jobs, (n) => `g${n % groups}`)
    const settings = { queue: options, concurrency: CONCURRENCY, takes: 0 }
    return withCrew(pond, url, PROCESSES, settings, async () => {
      await queue.resume()
      return measure(pond)
    })
  })

/** @returns jobs a second, by workers, from the end of the pause to the last completion */
const byWorkers = (url: string, jobs: number, groups: number): Promise<number> =>
  withBacklog(url, jobs, groups, async (pond) => {
    const from = performance.now()
    await drained(pond)
    return (jobs / (performance.now() - from)) * 1000
  })

/**
 * The rates of consecutive windows of one drain, each `length` ms long, while the backlog lasts. The windows begin when every group has had
 * `FIRST_TURNS` turns: on PostgreSQL the first turns are slower than the rest of a large backlog.
 */
export const windowsByWorkers = (
  url: string,
  jobs: number,
  groups: number,
  windows: number,
  length: number,
): Promise<number[]> =>
  withBacklog(url, jobs, groups, async (pond) => {
    const look = async () => {
      const { counts } = await pond.queue(QUEUE).stats()
      return { at: performance.now(), left: counts.waiting + counts.running }
    }
    while ((await look()).left > jobs - FIRST_TURNS * groups) await sleep(500)
    const rates: number[] = []
    for (let before = await look(); rates.length < windows && before.left > 0; ) {
      await sleep(length)
      const after = await look()
      rates.push(((before.left - after.left) / (after.at - before.at)) * 1000)
      before = after
    }
    return rates
  })

export const drain: Part = {
  title: `Drain of groups with \`running: 2\`: ${CLAIMERS} loops of claims of ${CLAIMED}, and ${PROCESSES} processes with ${CONCURRENCY} slots each (memory: one)`,
  head: ['groups', 'jobs each', 'by calls, jobs/s', 'by workers, jobs/s'],
  stores: ['memory', 'sqlite', 'postgres', 'redis'],
  async measure(store, fresh, { quick }) {
    const rows: { cells: string[]; bars: Bar[] }[] = []
    const jobs = quick ? JOBS / 10 : JOBS
    for (const groups of GROUPS) {
      const calls = await byCalls(await fresh(), jobs, groups)
      const workers = await byWorkers(await fresh(), jobs, groups)
      const bars =
        groups === JUDGED
          ? [atLeast(calls, LEAST[store], ' by calls'), atLeast(workers, LEAST[store], ' by workers')]
          : []
      rows.push({ cells: [`${groups}`, `${jobs / groups}`, compact(calls), compact(workers)], bars })
    }
    return rows
  },
}
