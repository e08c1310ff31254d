/**
 * Fills a store as a busy service does:
 *
 *   plain      waiting and scheduled jobs, some with keys; dead and done ones
 *   grouped    jobs of many groups, half of them from before claims that brought as many groups to their limit, half from after
 *   unclaimed  jobs of as many groups, from which nobody has claimed yet
 *   queue-N    one job each
 */

import type { Store } from '../../src/store.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { tell } from '../progress.ts'
import { newJobs } from '../store.ts'

export interface Sizes {
  /** Waiting jobs of `plain`, and of `grouped`. A tenth as many are dead, and done. */
  each: number
  /** Waiting jobs of `unclaimed`. */
  unclaimed: number
  groups: number
  queues: number
}

const BATCH = 1000
const AT_ONCE = 4
const DAY = 86_400_000
/** Long enough for all that is measured. */
const LEASE = 10 * DAY

export const PLAIN = 'plain'
export const GROUPED = 'grouped'
export const UNCLAIMED = 'unclaimed'
/** What every dead job has, and one in so many. */
export const COMMON_CODE = 'HandlerFailed'
export const RARE_CODE = 'MailboxGone'
const RARE = 10_000

export const groupOf = (n: number): string => `tenant-${n}`

export async function fill(store: Store, { each, unclaimed, groups, queues }: Sizes): Promise<void> {
  await store.operations.configure({ queue: PLAIN, capacity: null, keepDone: DAY, keepDead: DAY })
  for (const queue of [GROUPED, UNCLAIMED]) {
    await store.operations.configure({ queue, capacity: null, groupRunning: 1 })
  }
  await end(store, Math.ceil(each / 10))
  await push(store, PLAIN, each, (from, count) =>
    newJobs(PLAIN, new Array(count).fill(null)).map((job, n) => ({
      ...job,
      ...(from % (100 * BATCH) === 0 && { key: `order-${from + n}` }),
      priority: from % (10 * BATCH) === 0 ? 7 : 4,
      delay: from % (20 * BATCH) === BATCH ? DAY : 0,
    })),
  )
  // A group after the other: a call with jobs of one group is quicker.
  const ofGroup = Math.ceil(each / 2 / groups)
  await push(store, GROUPED, each / 2, (from, count) =>
    newJobs(
      GROUPED,
      Array.from({ length: count }, (_, n) => groupOf(Math.floor((from + n) / ofGroup))),
    ),
  )
  for (let held = 0; held < groups / 2; ) {
    const { jobs } = await store.operations.claim({ queue: GROUPED, worker: 'lab', limit: BATCH, lease: LEASE })
    if (jobs.length === 0) throw new Error(`no more jobs start than ${held}`)
    held += jobs.length
    tell(`${GROUPED}: ${held} of ${groups / 2} run`)
  }
  for (const [queue, count] of [
    [GROUPED, each / 2],
    [UNCLAIMED, unclaimed],
  ] as const) {
    await push(store, queue, count, (from, many) =>
      newJobs(
        queue,
        Array.from({ length: many }, (_, n) => groupOf(((from + n) * 7) % groups)),
      ),
    )
  }
  const names = Array.from({ length: queues }, (_, n) => `queue-${n}`)
  for (let from = 0; from < queues; from += BATCH) {
    await store.operations.push({ jobs: names.slice(from, from + BATCH).flatMap((name) => newJobs(name, [null])) })
  }
}

async function push(
  { operations }: Store,
  what: string,
  total: number,
  jobsFrom: (from: number, count: number) => NewJob[],
): Promise<void> {
  for (let from = 0; from < total; from += AT_ONCE * BATCH) {
    tell(`${what}: ${from.toLocaleString('en')} of ${total.toLocaleString('en')}`)
    const batches = Array.from({ length: AT_ONCE }, (_, n) => from + n * BATCH).filter((first) => first < total)
    await Promise.all(
      batches.map((first) => operations.push({ jobs: jobsFrom(first, Math.min(BATCH, total - first)) })),
    )
  }
}

/** So many done jobs, and as many dead ones. */
async function end(store: Store, count: number): Promise<void> {
  const { operations } = store
  await push(store, 'to be ended', 2 * count, (_, many) => newJobs(PLAIN, new Array(many).fill(null)))
  for (let ended = 0; ended < 2 * count; ) {
    tell(`ended: ${ended.toLocaleString('en')} of ${(2 * count).toLocaleString('en')}`)
    const { jobs } = await operations.claim({ queue: PLAIN, worker: 'lab', limit: BATCH, lease: LEASE })
    const half = Math.ceil(jobs.length / 2)
    const hold = (claim: (typeof jobs)[number]) => ({ id: claim.id, fence: claim.fence, claim })
    await operations.complete({
      queue: PLAIN,
      items: jobs.slice(0, half).map((claim) => ({ ...hold(claim), result: null })),
    })
    const failures = jobs.slice(half).map((claim, n) => {
      const code = (ended + n) % RARE === 0 ? RARE_CODE : COMMON_CODE
      return {
        ...hold(claim),
        error: { code, name: 'Error', message: `the mailbox ${n} answers nothing` },
        delay: null,
      }
    })
    await operations.fail({ queue: PLAIN, items: failures })
    // As every process with a worker does.
    await operations.sweep({ limit: BATCH })
    ended += jobs.length
  }
}
