/** Outcomes cross between the threads as the exceptions among them; here the others are filled in again. */
import type { HoldOutcome, NewJob, PushOutcome } from '../../store.ts'
import type { NotPushed, Stale } from './protocol.ts'

export function pushOutcomes(jobs: readonly NewJob[], exceptions: NotPushed): PushOutcome[] {
  const outcomes: PushOutcome[] = jobs.map(({ id }) => ({ status: 'pushed', id }))
  for (const { at, outcome } of exceptions) outcomes[at] = outcome
  return outcomes
}

export function holdOutcomes(count: number, stale: Stale): HoldOutcome[] {
  const outcomes: HoldOutcome[] = new Array<HoldOutcome>(count).fill('ok')
  for (const at of stale) outcomes[at] = 'stale'
  return outcomes
}
