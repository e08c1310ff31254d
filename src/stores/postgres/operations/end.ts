/** How claims end: complete, fail, release. */
import type { Completion, FailOutcome, Failure, HoldOutcome, Release } from '../../../store.ts'
import type { Context } from '../context.ts'
import { heldValues, holdOutcomes, plainArray, resultsText, storedFence, texts } from '../wire.ts'

export const COMPLETE = 'complete($1, $2, $3, $4, $5)'

export function completeValues(queue: string, completions: readonly Completion[], now: number | null): unknown[] {
  return [...heldValues(queue, completions), resultsText(completions), now]
}

export async function complete(
  context: Context,
  queue: string,
  completions: readonly Completion[],
): Promise<HoldOutcome[]> {
  const { calls, notifier } = context
  const answer = await calls.answer(COMPLETE, completeValues(queue, completions, calls.now()))
  const outcomes = holdOutcomes(completions, answer)
  for (const [at, { id }] of completions.entries()) {
    if (outcomes[at] === 'ok') notifier.bells.ring('finished', queue, id)
  }
  return outcomes
}

export async function fail(context: Context, queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
  const { calls, notifier } = context
  const sent = failures.map(({ id, fence, error, delay }) => {
    return { id, fence: storedFence(fence), error: JSON.stringify(error), delay }
  })
  const answer = await calls.answer('fail($1, $2, $3)', [queue, JSON.stringify(sent), calls.now()])
  const outcomes = texts(answer).map((said): FailOutcome => (said === 'retry' || said === 'dead' ? said : 'stale'))
  for (const [at, { id, delay }] of failures.entries()) {
    if (outcomes[at] === 'dead') notifier.bells.ring('finished', queue, id)
    else if (outcomes[at] === 'retry' && (delay === 0 || delay === 'backoff')) notifier.bells.ring('work', queue)
  }
  return outcomes
}

export async function release(context: Context, queue: string, releases: readonly Release[]): Promise<HoldOutcome[]> {
  const { calls, notifier } = context
  const pauses = plainArray(releases.map(({ pause }) => pause ?? 0))
  const values = [...heldValues(queue, releases), pauses, calls.now()]
  const outcomes = holdOutcomes(releases, await calls.answer('release($1, $2, $3, $4, $5)', values))
  if (outcomes.includes('ok')) notifier.bells.ring('work', queue)
  return outcomes
}
