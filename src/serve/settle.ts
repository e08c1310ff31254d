/** How workers over HTTP end their claims. All that is told here is told to the store in its own words. */
import { encode } from '../encoding.ts'
import { jobError } from '../job.ts'
import type { Encoded, Failure, JobError } from '../store.ts'

export interface ToldError {
  name?: string
  message?: string
  stack?: string
}

export interface ToldFailure {
  id: string
  fence: number
  error?: ToldError
  /** Milliseconds until the next attempt; false: no further one. */
  retry?: false | number
}

/** Null and nothing are the same: no result. @throws PayloadTooLarge, PayloadNotEncodable */
export function encodedResult(value: unknown, what: string, maxPayload: number): Encoded | null {
  return value === undefined || value === null ? null : encode(value, what, maxPayload)
}

/** As the store takes them. Where no delay is told it is for the queue's policy. */
export function failuresOf(told: readonly ToldFailure[]): Failure[] {
  return told.map(({ id, fence, error, retry }) => {
    const delay = retry === false ? null : (retry ?? 'backoff')
    return { id, fence, error: errorOf(error, delay === null), delay }
  })
}

function errorOf({ name, message, stack }: ToldError = {}, gaveUp: boolean): JobError {
  const error = new Error(message ?? (gaveUp ? 'the worker gave up' : 'the worker failed'))
  error.name = name ?? 'Error'
  // Ours would tell of this process.
  if (stack === undefined) delete error.stack
  else error.stack = stack
  return { ...jobError(error), code: gaveUp ? 'GaveUp' : 'HandlerFailed' }
}
