/** Pushes of all jobs or none, in one call of the store or in a transaction of the caller. */
import type { NewJob, PushOutcome } from '../store.ts'
import { DEFAULTS } from '../values/contract-defaults.ts'
import { MillpondError } from '../values/errors.ts'
import type { PondInternals } from './internals.ts'
import { bytesOf, MAX_PUSH, type Pushed } from './push.ts'
import { renamed } from './unsettled-pushes.ts'

const MAX_JOBS = DEFAULTS.graph.jobs
const MAX_BYTES = DEFAULTS.graph.bytes

/** The producer of a queue, as far as it is needed here. */
interface Source {
  told(): Promise<void>
  /** @throws QueueFull, ParentUnknown, the outcome's error */
  pushed(job: NewJob, outcome: PushOutcome | undefined): Pushed
  pushInTransaction(tx: unknown, jobs: NewJob[]): Promise<Pushed[]>
}

/** A job, and where it goes. */
export interface Member {
  producer: Source
  job: NewJob
}

/**
 * Pushes all of the jobs or none, in this order.
 * @throws InvalidOption, PayloadTooLarge, QueueFull, ParentUnknown, NotSupported, TransactionMismatch, `Store…`
 */
export async function pushWhole(pond: PondInternals, members: readonly Member[], tx: unknown): Promise<Pushed[]> {
  checkSize(members)
  if (members.length === 0) return []
  for (const producer of new Set(members.map((member) => member.producer))) {
    if (tx === undefined) await producer.told()
  }
  if (tx !== undefined) return pushInTransaction(members, tx)
  const given = members.map(({ job }) => job)
  const jobs = (await pond.unsettled.settled(given)) ?? given
  const outcomes = await pond.pusher.pushWhole(jobs)
  const isRefused = ({ status }: PushOutcome) => status === 'full' || status === 'orphan' || status === 'failed'
  const reason = outcomes.findIndex(isRefused)
  if (reason !== -1) members[reason]?.producer.pushed(jobs[reason] as NewJob, outcomes[reason])
  return members.map(({ producer }, at) => producer.pushed(jobs[at] as NewJob, outcomes[at]))
}

/** In a call for each run of jobs of one queue; what they amount to is the transaction's to commit or roll back. */
async function pushInTransaction(members: readonly Member[], tx: unknown): Promise<Pushed[]> {
  const names = new Map<string, string>()
  const pushed: Pushed[] = []
  for (let from = 0; from < members.length; ) {
    const { producer } = members[from] as Member
    let to = from + 1
    while (to < members.length && to - from < MAX_PUSH.items && members[to]?.producer === producer) to++
    const jobs = members.slice(from, to).map(({ job }) => renamed(job, names))
    const answers = await producer.pushInTransaction(tx, jobs)
    for (const [at, { id }] of jobs.entries()) names.set(id, answers[at]?.id ?? id)
    pushed.push(...answers)
    from = to
  }
  return pushed
}

function checkSize(members: readonly Member[]): void {
  if (members.length > MAX_JOBS) {
    throw new MillpondError('InvalidOption', `one call takes at most ${MAX_JOBS} jobs; got ${members.length}`)
  }
  const bytes = members.reduce((sum, { job }) => sum + bytesOf(job), 0)
  if (bytes <= MAX_BYTES) return
  const message = `the jobs of one call may have ${MAX_BYTES} bytes together, a parent counted as 36; got ${bytes}`
  throw new MillpondError('PayloadTooLarge', `${message}. Push fewer at once, or keep large data elsewhere`)
}
