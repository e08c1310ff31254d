/** Jobs for stores. */

import type { Encoded, JobError, JobRecord, NewJob } from '../../src/values/jobs/records.ts'

export const NULL: Encoded = { encoding: 'json', body: 'null' }
export const ERROR: JobError = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }

let ids = 0
/** A UUIDv7 in form, never the same twice. */
export const newId = (): string => `019b76da-a800-7000-8000-${(++ids).toString(16).padStart(12, '0')}`

/** A job of queue `q` that may run three times. */
export function newJob(given: Partial<NewJob> = {}): NewJob {
  return {
    id: newId(),
    queue: 'q',
    priority: 4,
    delay: 0,
    runAt: null,
    key: null,
    group: null,
    attempts: 3,
    timeout: null,
    trace: null,
    data: NULL,
    ...given,
  }
}

export const newJobs = (count: number, given: Partial<NewJob> = {}): NewJob[] =>
  Array.from({ length: count }, () => newJob(given))

/** A job that waits, as it was elsewhere: for `restore`. */
export function recordOf(given: Partial<JobRecord> = {}): JobRecord {
  const { id, queue, priority, key, group, trace, data } = newJob()
  return {
    ...{ id, queue, state: 'waiting', priority, attempt: 0, attempts: 3, fence: 0, key, group, cost: 1, timeout: null },
    ...{
      trace,
      pushedAt: 1_700_000_000_000,
      dueAt: 1_700_000_000_000,
      startedAt: null,
      finishedAt: null,
      worker: null,
    },
    ...{ data, progress: null, result: null, error: null },
    ...given,
  }
}
