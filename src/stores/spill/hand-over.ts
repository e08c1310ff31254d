/**
 * The end of a process: all that is in memory goes to the durable store, live jobs first.
 *
 * What waited in memory comes before what was spilled, so if there is any of that, it goes to the queue's front. A job
 * that still ran has lost its claim with the process, as if its lease had ended.
 */

import { MillpondError, storeError } from '../../values/errors/errors.ts'
import type { JobRecord, JobState } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { jobsAfter } from '../memory/operations/list.ts'
import type { MemoryQueue } from '../memory/queue.ts'
import { frontOf } from './names.ts'
import { persistent } from './persistence.ts'
import type { Spill } from './spill.ts'

/** Milliseconds for which the durable store is asked again when it fails. */
const PATIENCE = 10_000
const MOST = { items: 500, bytes: DEFAULTS.payload.max }

/** @throws `Store…`: with how many live jobs were lost */
export async function handOver(spill: Spill): Promise<void> {
  const { state } = spill.stores
  await Promise.allSettled([...spill.queues.values()].map(({ taking }) => taking))
  const queues = [...state.queues.values()]
  let left = queues.reduce((sum, queue) => sum + liveOf(queue), 0)
  const until = performance.now() + PATIENCE
  try {
    for (const queue of queues) {
      if (liveOf(queue) === 0) continue
      const front = (await hasSpilled(spill, queue.name, until)) ? frontOf(queue.name) : queue.name
      await give(spill, queue, records(queue, ['waiting']), front, until)
      await give(spill, queue, records(queue, ['scheduled', 'running']), queue.name, until)
      left -= liveOf(queue)
    }
    for (const queue of queues)
      await give(spill, queue, records(queue, ['dead', 'cancelled', 'done']), queue.name, until)
  } catch (cause) {
    const error = storeError(cause, 'the hand-over to the spill store')
    const what = left === 0 ? 'finished jobs' : `up to ${left} live jobs`
    const message = `${what} in memory were not handed to the spill store and are lost: ${error.message}`
    throw new MillpondError(error.code, message, { cause: error })
  }
}

const liveOf = ({ waiting, scheduled, running }: MemoryQueue): number => waiting.size + scheduled.size + running.size

/** Whether jobs of the queue wait in the durable store. */
async function hasSpilled(spill: Spill, queue: string, until: number): Promise<boolean> {
  if (!spill.queues.has(queue)) return false
  const { stats } = spill.stores.durable.operations
  const answer = await persistent(
    'a look at the spill store',
    () => stats({ queue }),
    () => performance.now() < until,
  )
  return answer.some(({ counts }) => counts.waiting > 0)
}

/** In the order in which they are to be put back: finished ones as they finished. */
function* records(queue: MemoryQueue, states: readonly JobState[]): Generator<JobRecord> {
  for (const state of states) {
    const jobs = jobsAfter(queue, state, null)
    const inOrder = state === 'dead' || state === 'cancelled' || state === 'done' ? [...jobs].reverse() : jobs
    for (const job of inOrder) yield job.toRecord()
  }
}

/** A job that runs: its process ends. */
function settled(record: JobRecord): JobRecord {
  if (record.state !== 'running') return record
  if (record.attempt < record.attempts) return { ...record, state: 'waiting' }
  const error = {
    code: 'LeaseLost',
    name: 'MillpondError',
    message: `Worker ${record.worker} was closed with its store.`,
  }
  return { ...record, state: 'dead', finishedAt: Date.now(), error }
}

async function give(
  spill: Spill,
  queue: MemoryQueue,
  jobs: Iterable<JobRecord>,
  name: string,
  until: number,
): Promise<void> {
  let batch: JobRecord[] = []
  let bytes = 0
  const goesOn = () => performance.now() < until
  for (const job of jobs) {
    const size = job.data.body.length + (job.result?.body.length ?? 0) + (job.progress?.body.length ?? 0)
    if (batch.length === MOST.items || (batch.length > 0 && bytes + size > MOST.bytes)) {
      await giveBatch(spill, queue, batch, goesOn)
      batch = []
      bytes = 0
    }
    batch.push({ ...settled(job), queue: name })
    bytes += size
  }
  if (batch.length > 0) await giveBatch(spill, queue, batch, goesOn)
}

/** May be repeated: what the durable store has already is `existing`. */
async function giveBatch(spill: Spill, queue: MemoryQueue, records: readonly JobRecord[], goesOn: () => boolean) {
  const { find, restore } = spill.stores.durable.operations
  const call = <T>(run: () => Promise<T>) => persistent('the hand-over to the spill store', run, goesOn)
  await call(() => spill.tell(spill.queue(queue.name)))
  const outcomes = await call(() => restore({ records }))
  const refused = records.filter(({ key }, index) => key !== null && outcomes[index] === 'existing')
  if (refused.length === 0) return
  // With several processes on the durable store, another job may have the key there. The job comes first.
  const found = await call(() => find({ ids: refused.map(({ id }) => id) }))
  const unknown = refused.filter((_, index) => found[index] === null).map((record) => ({ ...record, key: null }))
  if (unknown.length > 0) await call(() => restore({ records: unknown }))
}
