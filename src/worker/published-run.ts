import type { MillpondError } from '../values/errors/errors.ts'
import { isMillpondError } from '../values/errors/errors.ts'
import { type RunCall, runCalls } from '../values/runtime/published-calls.ts'
import type { Attempt } from './attempt.ts'
import { isOutcome, type Outcome } from './outcome.ts'

interface Run {
  queue: string
  isBatch: boolean
  attempts: Iterable<Attempt>
  whenStopped(listener: (reason: MillpondError) => void): void
}

const OUTCOMES: Readonly<Record<Outcome['kind'], string>> = {
  retry: 'Retry',
  giveUp: 'GaveUp',
  rateLimited: 'RateLimited',
}

/** Publishes the call of a handler. @param handle calls it @returns what it returns */
export async function publishedRun(run: Run, handle: () => unknown): Promise<unknown> {
  const { queue, isBatch, attempts } = run
  const jobs = [...attempts].map(({ claimed: { id, attempt, trace }, wait }) => ({ id, attempt, trace, wait }))
  const call: RunCall = { queue, isBatch, jobs, around: undefined, ended: undefined }
  runCalls.publish(call)
  const { around, ended } = call
  if (ended !== undefined) run.whenStopped(({ code }) => ended(code))
  try {
    const value = await (around === undefined ? handle() : around(handle))
    ended?.(isOutcome(value) ? OUTCOMES[value.kind] : null)
    return value
  } catch (error) {
    ended?.(codeOf(error))
    throw error
  }
}

/** Never a message, which may hold a part of the payload. */
function codeOf(thrown: unknown): string {
  if (isOutcome(thrown)) return OUTCOMES[thrown.kind]
  return isMillpondError(thrown) ? thrown.code : 'HandlerFailed'
}
