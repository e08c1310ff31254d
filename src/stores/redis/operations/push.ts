/** Pushes: each job to its queue's partition, all in one round trip. */

import type { Input, NewJob, Once, PushOutcome } from '../../../store.ts'
import { MillpondError } from '../../../values/errors.ts'
import { storedUnique } from '../../../values/once.ts'
import { SOON } from '../../bells.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { indexOf, type Partition, type Routed } from '../partition.ts'
import { askEach } from '../per-partition.ts'
import { encodedBytes, ID_BYTES, idsBytes, idText, inOnePiece } from '../wire.ts'
import { confirmListed, restoreSettings } from './configure.ts'

export const homeOf = (partitions: readonly Partition[], job: Routed): Partition | undefined =>
  partitions[indexOf(partitions.length, job)]

/** The partition of the job; of a queue that is not known yet, the queue. */
export const partOfJob = ({ queues }: StoreContext, job: NewJob): string =>
  homeOf(queues.known(job.queue) ?? [], job)?.part ?? job.queue

/** `fire` stores the jobs of schedules, each once, and even where there is no room; it was decided at this time. */
type Script = { name: 'push' } | { name: 'fire'; decided: number }

/** What was stored of a push that failed is found there when the push is repeated. */
export async function push(context: StoreContext, { jobs }: Input<'push'>): Promise<PushOutcome[]> {
  context.calls.assertOpen()
  const outcomes = await pushBy(context, jobs, { name: 'push' })
  const [first] = outcomes
  if (first?.error !== undefined && outcomes.every(({ status }) => status === 'failed')) throw first.error
  return outcomes
}

export async function pushBy(context: StoreContext, jobs: readonly NewJob[], script: Script): Promise<PushOutcome[]> {
  const answers = await askEach(
    jobs,
    ({ queue }) => queue,
    (queue, own) => pushToQueue(context, script, queue, own),
  )
  return answers.map((answer, at): PushOutcome => {
    if (answer !== undefined && !(answer instanceof MillpondError)) return answer
    const error = answer ?? new MillpondError('StoreFailed', 'push: Redis gave no answer for a job')
    return { status: 'failed', id: jobs[at]?.id ?? '', error }
  })
}

/**
 *   known, registered ──push──► stored
 *        ▲          └──► refused: the partition is not listed ──registered again, push with the floor──► stored ──► confirmed, listed
 *     not known
 *
 * @param floor of a queue that was just registered
 */
async function pushToQueue(
  context: StoreContext,
  script: Script,
  queue: string,
  jobs: readonly NewJob[],
  floor: number | null = null,
): Promise<(PushOutcome | MillpondError)[]> {
  const { queues } = context
  const known = queues.known(queue)
  const { partitions, floor: given } = known ? { partitions: known, floor } : await queues.create(queue)
  const answers = await askEach<Partition, NewJob, PushOutcome | MillpondError>(
    jobs,
    (job) => (isPlaceable(partitions, job) ? homeOf(partitions, job) : undefined),
    async (partition, own) =>
      (await pushTo(context, script, partition, own, given)) ??
      (await pushToQueue(context, script, queue, own, (await queues.create(queue)).floor)),
  )
  return answers.map((answer, at) => answer ?? notPlaceable(queue, jobs[at]?.id))
}

/** A group's jobs lie in one partition, and a key's in one: of several partitions, these may be two. */
export const isPlaceable = (partitions: readonly Partition[], { key, group }: Routed): boolean =>
  partitions.length === 1 || key === null || group === null

export function notPlaceable(queue: string, id: string | undefined): MillpondError {
  const message = `a job of the queue ${queue} cannot have a key and a group: the queue is split into partitions`
  return new MillpondError('NotSupported', message, { queue, ...(id !== undefined && { id }) })
}

/** @returns null where nothing was stored, since the partition is not listed */
async function pushTo(
  context: StoreContext,
  script: Script,
  partition: Partition,
  jobs: readonly NewJob[],
  floor: number | null,
): Promise<PushOutcome[] | null> {
  const { queue } = partition
  const { notifier, locations } = context
  const { values, which } = distinctValues(jobs)
  const ids = idsBytes(jobs)
  const { sizes, bytes } = inOnePiece(jobs.map(({ data }) => encodedBytes(data)))
  const name = script.name === 'push' && values.some(hasOnce) ? 'push-once' : script.name
  const [listed, ...answers] = await callScript(context, name, partition, {
    head: [floor, values, which, sizes, partition.count, ...(script.name === 'fire' ? [script.decided] : [])],
    items: [ids, bytes],
    safe: true,
  })
  if (listed === TOO_LATE) throw new MillpondError('StoreUnavailable', `a firing for ${queue} was sent too late`)
  if (listed !== 1) restoreSettings(context, queue)
  if (listed === undefined) return null
  if (jobs.some(({ delay, runAt }) => runAt !== null || delay < SOON)) notifier.local.ring('work', queue)
  if (listed !== 1) await confirmListed(context, partition)
  const outcomes = jobs.map(({ id }, at) => outcomeOf(answers.length === 0 ? PUSHED : answers[at], id))
  locations.remember(partition, answers.length === 0 ? ids : idsBytes(outcomes))
  return outcomes
}

/**
 * Jobs that are pushed together mostly differ in nothing but their data. `which`: of each job, where its values stand, from 1; null: all in
 * the first.
 */
function distinctValues(jobs: readonly NewJob[]): { values: unknown[][]; which: number[] | null } {
  const values: unknown[][] = []
  const plain: number[] = []
  const which = jobs.map(({ priority, delay, runAt, attempts, timeout, group, key, trace, cost = 1, once }) => {
    const timed = delay !== 0 || runAt !== null || attempts !== null || timeout !== null
    const isPlain = !timed && group === null && key === null && trace === null && cost === 1
    const known = isPlain ? plain[priority] : undefined
    if (known !== undefined) return known
    const value = [priority, delay, runAt, attempts, timeout, group, key, trace]
    const more = once === undefined || key === null ? [cost] : [cost === 1 ? null : cost, packedOnce(once)]
    const at = values.push(more[0] === 1 ? value : [...value, ...more])
    if (isPlain) plain[priority] = at
    return at
  })
  return { values, which: values.length === 1 ? null : which }
}

const ONCE_AT = 9
const hasOnce = (value: unknown[]): boolean => value[ONCE_AT] !== undefined

/** As push-once.lua takes it. */
const packedOnce = ({ unique, replace, maxWait, follow }: Once) => [
  storedUnique(unique),
  replace === true ? true : null,
  maxWait ?? null,
  follow === true ? true : null,
]

const PUSHED = 0
/** Instead of `listed`, of a firing. */
const TOO_LATE = 2

function outcomeOf(answer: unknown, id: string): PushOutcome {
  // Behind the id of a job that was replaced stands a byte more.
  if (Buffer.isBuffer(answer)) {
    const status = answer.length > ID_BYTES ? 'replaced' : 'existing'
    return { status, id: idText(answer.subarray(0, ID_BYTES)) }
  }
  return { status: answer === PUSHED ? 'pushed' : 'full', id }
}
