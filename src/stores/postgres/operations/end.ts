/** How claims end: complete, fail, release. Parks are in `journal.ts`. */

import type { Input, OfQueue } from '../../../store.ts'
import type {
  Completion,
  FailOutcome,
  HoldOutcome,
  Park,
  Release,
  ReleaseOutcome,
} from '../../../values/jobs/records.ts'
import { SOON } from '../../bells.ts'
import type { StoreContext } from '../context.ts'
import { bodiesText, heldValues, holdOutcomes, linesText, logsText, plainArray, storedFence } from '../wire.ts'
import { park } from './journal.ts'

export const COMPLETE = 'complete($1, $2, $3, $4, $5, $6)'

export function completeValues({ queue, items }: OfQueue<Completion>, now: number | null): unknown[] {
  return [queue, ...heldValues(items), bodiesText(items.map(({ result }) => result)), logsText(items), now]
}

export async function complete({ calls, notifier }: StoreContext, input: Input<'complete'>): Promise<HoldOutcome[]> {
  const { queue, items } = input
  const held = await calls.answer<number[] | null>(COMPLETE, completeValues(input, calls.now()))
  const outcomes = holdOutcomes(items, held)
  for (const [at, { id }] of items.entries()) {
    if (outcomes[at] === 'ok') notifier.bells.ring('finished', queue, id)
  }
  if (outcomes.includes('ok')) notifier.freed(queue)
  return outcomes
}

export async function fail({ calls, notifier }: StoreContext, { queue, items }: Input<'fail'>): Promise<FailOutcome[]> {
  const sent = items.map(({ id, fence, error, delay, log }) => {
    return { id, fence: storedFence(fence), error: JSON.stringify(error), delay, log: linesText(log) }
  })
  const outcomes = await calls.answer<FailOutcome[]>('fail($1, $2, $3)', [queue, JSON.stringify(sent), calls.now()])
  for (const [at, { id, delay }] of items.entries()) {
    if (outcomes[at] === 'dead') notifier.bells.ring('finished', queue, id)
    else if (outcomes[at] === 'retry' && (delay === 'backoff' || (delay ?? SOON) < SOON))
      notifier.bells.ring('work', queue)
  }
  if (outcomes.some((outcome) => outcome !== 'stale')) notifier.freed(queue)
  return outcomes
}

export async function release(context: StoreContext, { queue, items }: Input<'release'>): Promise<ReleaseOutcome[]> {
  const parks = items.filter(hasPark)
  if (parks.length === 0) return giveBack(context, queue, items)
  const others = items.filter((item) => !hasPark(item))
  const [parked, given] = await Promise.all([
    park(context, queue, parks),
    others.length === 0 ? [] : giveBack(context, queue, others),
  ])
  return items.map((item) => (hasPark(item) ? parked.shift() : given.shift()) ?? 'stale')
}

const hasPark = (item: Release): item is Release & { park: Park } => item.park !== undefined

async function giveBack(
  { calls, notifier }: StoreContext,
  queue: string,
  items: readonly Release[],
): Promise<HoldOutcome[]> {
  const pauses = plainArray(items.map(({ pause }) => pause ?? 0))
  const values = [queue, ...heldValues(items), pauses, logsText(items), calls.now()]
  const held = await calls.answer<number[] | null>('release($1, $2, $3, $4, $5, $6)', values)
  const outcomes = holdOutcomes(items, held)
  if (outcomes.includes('ok')) notifier.bells.ring('work', queue)
  return outcomes
}
