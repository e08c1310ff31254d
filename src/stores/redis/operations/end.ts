/** Ends claims: complete, fail, release. */

import type { OfQueue } from '../../../store.ts'
import type {
  Completion,
  FailOutcome,
  Failure,
  Hold,
  HoldOutcome,
  Park,
  Release,
  ReleaseOutcome,
} from '../../../values/jobs/records.ts'
import { SOON } from '../../bells.ts'
import { inChunks, MAX_CHANGES_PER_CALL, MAX_ITEMS_PER_CALL } from '../chunks.ts'
import type { Arg } from '../connection/calls.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { encodedOrNothing, errorBytes, idBytes, idsBytes, logsIn } from '../wire.ts'
import { entryArgs } from './journal.ts'

/** How a script takes claims, and what its answers stand for. */
interface Operation<Item, Outcome> {
  script: string
  head?: (items: readonly Item[]) => readonly unknown[]
  args: (items: readonly Item[]) => readonly Arg[]
  outcomes: readonly Outcome[]
  /** Items of one call. */
  most: number
}

/** Nothing further where no claim has lines for its job's log. */
function logsHead(items: readonly Hold[]): unknown[] {
  const logs = logsIn(items)
  return logs === null ? [] : [logs]
}

const COMPLETE: Operation<Completion, HoldOutcome> = {
  script: 'complete',
  head: (items) => {
    // Jobs of one claim mostly have the same fence.
    const fences = items.map(({ fence }) => fence)
    return [fences.every((fence) => fence === fences[0]) ? fences[0] : fences, ...logsHead(items)]
  },
  args: (items) => {
    const results = items.map(({ result }) => encodedOrNothing(result))
    return [idsBytes(items), ...(results.every((result) => result === '') ? [] : results)]
  },
  outcomes: ['ok', 'stale'],
  most: MAX_ITEMS_PER_CALL,
}
const FAIL: Operation<Failure, FailOutcome> = {
  script: 'fail',
  head: logsHead,
  args: (items) =>
    items.flatMap(({ id, fence, error, delay }) => [idBytes(id), fence, errorBytes(error), delayText(delay)]),
  outcomes: ['retry', 'stale', 'dead'],
  most: MAX_CHANGES_PER_CALL,
}
const RELEASE: Operation<Release, ReleaseOutcome> = {
  script: 'release',
  head: (items) => {
    const pauses = items.some(({ pause }) => pause) ? items.map(({ pause = 0 }) => pause) : null
    const parks = items.some(({ park }) => park) ? items.map(({ park }) => park !== undefined && parkHead(park)) : null
    const head = [pauses, logsIn(items), parks]
    return head.every((each) => each === null) ? [] : head
  },
  args: (items) => [
    ...items.flatMap(({ id, fence }) => [idBytes(id), fence]),
    ...items.flatMap(({ park }) => (park === undefined ? [] : parkArgs(park))),
  ],
  outcomes: ['ok', 'stale', 'full'],
  most: MAX_CHANGES_PER_CALL,
}

const parkHead = ({ until, signals, entries, reason }: Park) => [until ?? false, signals, entries.length, reason]
const parkArgs = ({ after, entries }: Park): Arg[] => [
  idBytes([...new Set(after)].join('')),
  ...entries.flatMap(entryArgs),
]

export async function complete(context: StoreContext, { queue, items }: OfQueue<Completion>): Promise<HoldOutcome[]> {
  const outcomes = await end(context, queue, items, COMPLETE)
  for (const [i, { id }] of items.entries())
    if (outcomes[i] === 'ok') context.notifier.local.ring('finished', queue, id)
  return outcomes
}

export async function fail(context: StoreContext, { queue, items }: OfQueue<Failure>): Promise<FailOutcome[]> {
  const outcomes = await end(context, queue, items, FAIL)
  for (const [i, { id, delay }] of items.entries()) {
    if (outcomes[i] === 'dead') context.notifier.local.ring('finished', queue, id)
    else if (outcomes[i] === 'retry' && (delay === 'backoff' || (delay ?? SOON) < SOON))
      context.notifier.local.ring('work', queue)
  }
  return outcomes
}

export async function release(context: StoreContext, { queue, items }: OfQueue<Release>): Promise<ReleaseOutcome[]> {
  const outcomes = await end(context, queue, items, RELEASE)
  if (outcomes.includes('ok')) context.notifier.local.ring('work', queue)
  return outcomes
}

/** An ending without an answer may have taken effect. When it is sent again, the script learns so, and does not answer `stale` for it. */
async function end<Item extends Hold, Outcome>(
  context: StoreContext,
  queue: string,
  items: readonly Item[],
  { script, head = () => [], args, outcomes, most }: Operation<Item, Outcome | 'stale'>,
): Promise<(Outcome | 'stale')[]> {
  const { doubtfulEndings } = context
  try {
    return await inChunks(
      items,
      async (some) => {
        const again = some.some(({ claim }) => claim !== undefined && doubtfulEndings.has(claim))
        const call = { queue, head: head(some), items: args(some), again, safe: true }
        const answers = await callScript(context, script, call)
        return answers.map((answer) => outcomes[Number(answer)] ?? 'stale')
      },
      most,
    )
  } catch (error) {
    for (const { claim } of items) if (claim !== undefined) doubtfulEndings.add(claim)
    throw error
  }
}

/** As `fail.lua` takes it. */
function delayText(delay: Failure['delay']): string {
  if (delay === null) return ''
  return delay === 'backoff' ? `r${Math.random()}` : String(delay)
}
