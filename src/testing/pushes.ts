/** Remembers every job that was pushed, whatever became of it. */

import type { Store } from '../store.ts'
import { decode } from '../values/encoding/encoding.ts'
import type { NewJob } from '../values/jobs/records.ts'

/** A job as it was pushed. */
export interface PushedJob<Data = unknown> {
  id: string
  /** As a handler gets it: a Date is its ISO text. */
  data: Data
  key: string | null
  group: string | null
  priority: number
  cost: number
  /** Milliseconds; not used when `runAt` is set. */
  delay: number
  runAt: Date | null
  /** The ids of the jobs that it waits for; empty: of none. */
  after: readonly string[]
  /** null: as many as the queue says. */
  attempts: number | null
  /** Milliseconds; null: as long as the queue says. */
  timeout: number | null
}

export class Pushes {
  readonly #jobs = new Map<string, NewJob[]>()

  /** In the order in which the store took them. A push that found a job with its key or id stored nothing, and is not here. */
  of<Data>(queue: string): PushedJob<Data>[] {
    return (this.#jobs.get(queue) ?? []).map((job) => pushedJob<Data>(job))
  }

  recorded(store: Store): Store {
    const { push, fire } = store.operations
    return {
      ...store,
      operations: {
        ...store.operations,
        push: async (input) => {
          const outcomes = await push(input)
          for (const [index, job] of input.jobs.entries()) if (outcomes[index]?.status === 'pushed') this.#add(job)
          return outcomes
        },
        fire: async (input) => {
          const outcomes = await fire(input)
          for (const [index, { jobs }] of input.firings.entries()) {
            const outcome = outcomes[index]
            if (outcome?.status !== 'fired') continue
            for (const [at, job] of jobs.entries()) if (outcome.jobs[at]?.status === 'pushed') this.#add(job)
          }
          return outcomes
        },
      },
    }
  }

  #add(job: NewJob): void {
    const jobs = this.#jobs.get(job.queue)
    if (jobs === undefined) this.#jobs.set(job.queue, [job])
    else jobs.push(job)
  }
}

function pushedJob<Data>(job: NewJob): PushedJob<Data> {
  const { id, key, group, priority, cost = 1, delay, after = [], attempts, timeout } = job
  const runAt = job.runAt === null ? null : new Date(job.runAt)
  // Its type is the caller's word, as that of a queue is.
  const data = decode(job.data, 'data') as Data
  return { id, data, key, group, priority, cost, delay, runAt, after, attempts, timeout }
}
