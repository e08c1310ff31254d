/** Pushes that go past the pusher: all jobs of a call or none, and those inside a transaction of the caller. */

import type { Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { lacking } from '../../values/operations/capabilities.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import type { QueueSettings } from '../../values/settings/settings.ts'
import type { PondInternals } from '../internals.ts'
import type { Pushed } from './options.ts'
import { bytesOf } from './pusher.ts'

const MAX_JOBS = DEFAULTS.graph.jobs
const MAX_BYTES = DEFAULTS.graph.bytes
const LARGER =
  'For a larger graph push some jobs first, and let the others wait for their ids (after), or be part of one of them (partOf)'

/** Outcomes for which a push of all or none stores nothing. */
const REFUSED: ReadonlySet<PushOutcome['status']> = new Set(['full', 'orphan', 'held', 'failed'])

/** The producer of a queue, as far as it is needed here. */
interface Source {
  told(): Promise<void>
  readonly unsent: QueueSettings | undefined
  /** @throws QueueFull, ParentUnknown, KeyHeld, the outcome's error */
  pushed(job: NewJob, outcome: PushOutcome | undefined): Pushed
  /** The same, without an event. */
  answered(outcome: PushOutcome | undefined): Pushed
}

/** A job, and where it goes. */
export interface Member {
  producer: Source
  job: NewJob
}

/**
 * Pushes all of the jobs or none, in this order.
 * @throws InvalidOption, PayloadTooLarge, QueueFull, ParentUnknown, KeyHeld, NotSupported, TransactionMismatch, `Store…`
 */
export async function pushWhole(pond: PondInternals, members: readonly Member[], tx: unknown): Promise<Pushed[]> {
  checkSize(members)
  if (members.length === 0) return []
  const given = members.map(({ job }) => job)
  const producers = new Set(members.map(({ producer }) => producer))
  if (tx !== undefined) {
    const outcomes = await pushInTransaction(pond.store, producers, { tx, jobs: given, whole: true })
    return answersOf(members, outcomes, ({ producer }, outcome) => producer.answered(outcome))
  }
  for (const producer of producers) await producer.told()
  const outcomes = await pond.pusher.pushWhole((await pond.unsettled.settled(given)) ?? given)
  return answersOf(members, outcomes, ({ producer, job }, outcome) => producer.pushed(job, outcome))
}

function answersOf(
  members: readonly Member[],
  outcomes: readonly PushOutcome[],
  answer: (member: Member, outcome: PushOutcome | undefined) => Pushed,
): Pushed[] {
  // The reason why nothing was stored comes before those that were withheld for it.
  const reason = outcomes.findIndex(({ status }) => REFUSED.has(status))
  if (reason !== -1) answer(members[reason] as Member, outcomes[reason])
  return members.map((member, at) => answer(member, outcomes[at]))
}

function checkSize(members: readonly Member[]): void {
  checkCount(members.length)
  const bytes = members.reduce((sum, { job }) => sum + bytesOf(job), 0)
  if (bytes <= MAX_BYTES) return
  const message = `the jobs of one call may have ${MAX_BYTES} bytes together, a parent counted as 36; got ${bytes}`
  throw new MillpondError('PayloadTooLarge', `${message}. ${LARGER}`)
}

/** @throws PayloadTooLarge */
export function checkCount(count: number): void {
  if (count <= MAX_JOBS) return
  const message = `a call that stores all of its jobs or none takes at most ${MAX_JOBS}; got ${count}`
  throw new MillpondError('PayloadTooLarge', `${message}. ${LARGER}`)
}

interface Given {
  tx: unknown
  jobs: readonly NewJob[]
  /** All of the jobs or none. */
  whole?: boolean
}

/**
 * Inside a transaction of the caller, which commits or rolls back. Nothing is emitted: the jobs come to be with its commit.
 * @param sources of the queues of all jobs
 * @throws NotSupported, TransactionMismatch, `Store…`
 */
export async function pushInTransaction(
  store: Store,
  sources: Iterable<Pick<Source, 'told' | 'unsent'>>,
  given: Given,
): Promise<PushOutcome[]> {
  const { transactions } = store
  if (transactions === undefined) throw lacking(store, 'transactions', 'tx')
  const settings: QueueSettings[] = []
  for (const source of sources) {
    if (!transactions.takesSettings) await source.told()
    if (source.unsent !== undefined) settings.push(source.unsent)
  }
  return transactions.push({ ...given, ...(settings.length > 0 && { settings }) })
}
