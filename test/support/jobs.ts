/** Jobs for stores. */

import type { Encoded, JobError, NewJob } from '../../src/store.ts'

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
