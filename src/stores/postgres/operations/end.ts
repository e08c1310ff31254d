/** How claims end: complete, fail, release. Parks are in `journal.ts`. */

import type { Input, OfQueue } from '../../../store.ts'
import type {
  Completion,
  FailOutcome,
  Failure,
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

const HELD = 'held' as const

export async function complete(context: StoreContext, input: Input<'complete'>): Promise<HoldOutcome[]> {
  const { calls, notifier } = context
  const { queue, items, deferred = false } = input
  const outcomes = await context.apart(items, {
    sent: (some) => [COMPLETE, completeValues({ queue, items: some }, calls.now())],
    read: (answer: number[] | null, some): HoldOutcome[] => holdOutcomes(some, answer),
    held: deferred ? HELD : undefined,
  })
  for (const [at, { id }] of items.entries()) {
    if (outcomes[at] === 'ok') notifier.bells.ring('finished', queue, id)
  }
  if (outcomes.includes('ok')) notifier.freed(queue)
  return outcomes
}

export async function fail(context: StoreContext, input: Input<'fail'>): Promise<FailOutcome[]> {
  const { calls, notifier } = context
  const { queue, items, deferred = false } = input
  const outcomes = await context.apart(items, {
    sent: (some) => ['fail($1, $2, $3)', [queue, JSON.stringify(some.map(sentFailure)), calls.now()]],
    read: (answer: FailOutcome[]) => answer,
    held: deferred ? HELD : undefined,
  })
  for (const [at, { id, delay }] of items.entries()) {
    if (outcomes[at] === 'dead') notifier.bells.ring('finished', queue, id)
    else if (outcomes[at] === 'retry' && (delay === 'backoff' || (delay ?? SOON) < SOON))
      notifier.bells.ring('work', queue)
  }
  if (outcomes.some((outcome) => outcome === 'retry' || outcome === 'dead')) notifier.freed(queue)
  return outcomes
}

const sentFailure = ({ id, fence, error, delay, log }: Failure) => ({
  ...{ id, fence: storedFence(fence), error: JSON.stringify(error), delay, log: linesText(log) },
})

export async function release(context: StoreContext, input: Input<'release'>): Promise<ReleaseOutcome[]> {
  const { queue, items, deferred = false } = input
  const parks = items.filter(hasPark)
  if (parks.length === 0) return giveBack(context, input)
  const others = items.filter((item) => !hasPark(item))
  const [parked, given] = await Promise.all([
    park(context, queue, parks, deferred),
    others.length === 0 ? [] : giveBack(context, { queue, items: others, deferred }),
  ])
  return items.map((item) => (hasPark(item) ? parked.shift() : given.shift()) ?? 'stale')
}

const hasPark = (item: Release): item is Release & { park: Park } => item.park !== undefined

async function giveBack(context: StoreContext, input: Input<'release'>): Promise<HoldOutcome[]> {
  const { calls, notifier } = context
  const { queue, items, deferred = false } = input
  const outcomes = await context.apart(items, {
    sent: (some) => {
      const pauses = plainArray(some.map(({ pause }) => pause ?? 0))
      const values = [queue, ...heldValues(some), pauses, logsText(some), calls.now()]
      return ['release($1, $2, $3, $4, $5, $6)', values]
    },
    read: (answer: number[] | null, some): HoldOutcome[] => holdOutcomes(some, answer),
    held: deferred ? HELD : undefined,
  })
  if (outcomes.includes('ok')) notifier.bells.ring('work', queue)
  return outcomes
}
