/** How claims end: complete, fail, release. */
import type { Completion, FailOutcome, Failure, HoldOutcome, Release } from '../../../store.ts'
import { SOON } from '../../bells.ts'
import type { Context } from '../notifier.ts'
import { bodiesText, heldValues, holdOutcomes, plainArray, storedFence } from '../wire.ts'

export const COMPLETE = 'complete($1, $2, $3, $4, $5)'

export function completeValues(queue: string, completions: readonly Completion[], now: number | null): unknown[] {
  return [queue, ...heldValues(completions), bodiesText(completions.map(({ result }) => result)), now]
}

export async function complete(
  context: Context,
  queue: string,
  completions: readonly Completion[],
): Promise<HoldOutcome[]> {
  const { calls, notifier } = context
  const held = await calls.answer<number[] | null>(COMPLETE, completeValues(queue, completions, calls.now()))
  const outcomes = holdOutcomes(completions, held)
  for (const [at, { id }] of completions.entries()) {
    if (outcomes[at] === 'ok') notifier.bells.ring('finished', queue, id)
  }
  if (outcomes.includes('ok')) notifier.freed(queue)
  return outcomes
}

export async function fail(context: Context, queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
  const { calls, notifier } = context
  const sent = failures.map(({ id, fence, error, delay }) => {
    return { id, fence: storedFence(fence), error: JSON.stringify(error), delay }
  })
  const outcomes = await calls.answer<FailOutcome[]>('fail($1, $2, $3)', [queue, JSON.stringify(sent), calls.now()])
  for (const [at, { id, delay }] of failures.entries()) {
    if (outcomes[at] === 'dead') notifier.bells.ring('finished', queue, id)
    else if (outcomes[at] === 'retry' && (delay === 'backoff' || (delay ?? SOON) < SOON))
      notifier.bells.ring('work', queue)
  }
  if (outcomes.some((outcome) => outcome !== 'stale')) notifier.freed(queue)
  return outcomes
}

export async function release(context: Context, queue: string, releases: readonly Release[]): Promise<HoldOutcome[]> {
  const { calls, notifier } = context
  const pauses = plainArray(releases.map(({ pause }) => pause ?? 0))
  const values = [queue, ...heldValues(releases), pauses, calls.now()]
  const held = await calls.answer<number[] | null>('release($1, $2, $3, $4, $5)', values)
  const outcomes = holdOutcomes(releases, held)
  if (outcomes.includes('ok')) notifier.bells.ring('work', queue)
  return outcomes
}
