/** The jobs that a running one has waited for, with what they came to. */

import type { Store } from '../../store.ts'
import { needs } from '../operations/capabilities.ts'
import { outcomesOf } from '../operations/outcomes.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { readable } from './job.ts'
import type { JobError, JobOutcome, JobState } from './records.ts'

/** What a job that was waited for has come to. */
export interface ParentJob<Result = unknown> {
  id: string
  /** null: it is gone. */
  queue: string | null
  /**
   * `done`, `dead` or `cancelled`; another one if it was sent back to waiting since. `gone`: the store does not know any more what
   * it came to, as it was removed, or its queue keeps no jobs.
   */
  state: JobState | 'gone'
  /** What its handler returned, as stored; undefined unless it is done. */
  result: Result | undefined
  /** Of its last failed attempt; of one that was cancelled for a parent of its own, `ParentFailed`. */
  error: JobError | null
}

/** Jobs asked for in a call: the results of a further call need not be in memory beside those of this one. */
const JOBS_PER_CALL = 100

/** @returns in the order of ids @throws NotSupported, `Store…` */
export async function parentsOf(store: Read, id: string): Promise<ParentJob[]> {
  const parents: ParentJob[] = []
  for await (const parent of parentsFrom(store, id)) parents.push(parent)
  return parents
}

type Read = Pick<Store, 'name' | 'capabilities' | 'operations'>

/** The same, read as they are taken. @param after only those with a greater id */
export async function* parentsFrom(store: Read, id: string, after = ''): AsyncGenerator<ParentJob> {
  needs(store, 'graphs', 'the parents of a job')
  const [relatives] = await store.operations.relatives({ ids: [id], limit: DEFAULTS.bounds.parents.most })
  const ids = [...(relatives?.parents ?? []), ...(relatives?.gone ?? [])].filter((parent) => parent > after).sort()
  for (let from = 0; from < ids.length; from += JOBS_PER_CALL) {
    let at = from
    for await (const outcomes of outcomesOf(store, ids.slice(from, from + JOBS_PER_CALL))) {
      for (const outcome of outcomes) {
        yield outcome === null ? { ...GONE, id: ids[at] ?? '' } : parentJob(outcome)
        at++
      }
    }
  }
}

const GONE = { queue: null, state: 'gone', result: undefined, error: null } as const

function parentJob({ id, queue, state, result, error }: JobOutcome): ParentJob {
  const read = state === 'done' && result !== null ? readable(result, `result of job ${id}`) : null
  return { id, queue, state, result: read?.value, error }
}
