/** Pushes: each job to its queue's partition, all in one round trip. */

import type { NewJob, PushOutcome } from '../../../store.ts'
import { MillpondError, storeError } from '../../../values/errors.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import { indexOf, type Partition } from '../partition.ts'
import { askEach } from '../per-partition.ts'
import { encodedBytes, idsBytes, idText } from '../wire.ts'
import { confirmListed, restoreSettings } from './configure.ts'

const homeOf = ({ queues }: Context, job: NewJob): Partition | undefined => {
  const partitions = queues.known(job.queue)
  return partitions?.[indexOf(partitions.length, job)]
}

/** Jobs of one lane go to one partition; of a queue that is not known yet, to one queue. */
export const lane = (context: Context, job: NewJob): string => homeOf(context, job)?.part ?? job.queue

/**
 * What was stored of a push that failed is found there when the push is repeated.
 *
 *   known, registered ──push──► stored
 *        ▲          └──► refused: the partition is not listed ──registered again, push with the floor──► stored ──► confirmed, listed
 *     not known
 */
export async function push(context: Context, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  context.calls.assertOpen()
  const { queues } = context
  const unknown = [...new Set(jobs.map(({ queue }) => queue))].filter((queue) => queues.known(queue) === undefined)
  const floors = new Map<string, number>()
  let failure: MillpondError | undefined
  if (unknown.length > 0) {
    const registered = await Promise.allSettled(
      unknown.map(async (queue) => floors.set(queue, await queues.create(queue))),
    )
    const failed = registered.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') failure = storeError(failed.reason, 'push')
  }
  const outcomes = (await pushEach(context, jobs, floors)).map((answer, at): PushOutcome => {
    if (answer !== undefined && !(answer instanceof MillpondError)) return answer
    const error = answer ?? failure ?? new MillpondError('StoreFailed', 'push: Redis gave no answer for a job')
    return { status: 'failed', id: jobs[at]?.id ?? '', error }
  })
  const [first] = outcomes
  if (first?.error !== undefined && outcomes.every(({ status }) => status === 'failed')) throw first.error
  return outcomes
}

/** @param floors of the queues that were just registered */
function pushEach(
  context: Context,
  jobs: readonly NewJob[],
  floors: Map<string, number>,
): Promise<(PushOutcome | MillpondError | undefined)[]> {
  return askEach<NewJob, PushOutcome | MillpondError | undefined>(
    jobs,
    (job) => homeOf(context, job),
    async (partition, own) => {
      if (partition.count > 1 && own.some(isKeyedAndGrouped)) return pushPlaceable(context, own, floors)
      const outcomes = await pushTo(context, partition, own, floors.get(partition.queue) ?? null)
      if (outcomes !== null) return outcomes
      return pushEach(context, own, floors.set(partition.queue, await context.queues.create(partition.queue)))
    },
  )
}

const isKeyedAndGrouped = ({ key, group }: NewJob): boolean => key !== null && group !== null

/** A group's jobs lie in one partition, and a key's in one: of several partitions, these may be two. */
async function pushPlaceable(
  context: Context,
  jobs: readonly NewJob[],
  floors: Map<string, number>,
): Promise<(PushOutcome | MillpondError | undefined)[]> {
  const placeable = jobs.filter((job) => !isKeyedAndGrouped(job))
  const outcomes = (await pushEach(context, placeable, floors)).values()
  return jobs.map((job) => {
    if (!isKeyedAndGrouped(job)) return outcomes.next().value
    const message = `a job of the queue ${job.queue} cannot have a key and a group: the queue is split into partitions`
    return new MillpondError('NotSupported', message, { queue: job.queue, id: job.id })
  })
}

/** @returns null where nothing was stored, since the partition is not listed */
async function pushTo(
  context: Context,
  partition: Partition,
  jobs: readonly NewJob[],
  floor: number | null,
): Promise<PushOutcome[] | null> {
  const { queue } = partition
  const { notifier, locations } = context
  const { values, which } = distinctValues(jobs)
  const items = [idsBytes(jobs), ...jobs.map(({ data }) => encodedBytes(data))]
  const [listed, ...answers] = await callScript(context, 'push', partition, {
    head: [floor, values, which],
    items,
    safe: true,
  })
  if (listed !== 1) restoreSettings(context, queue)
  if (listed === undefined) return null
  if (jobs.some(({ delay, runAt }) => runAt !== null || delay === 0)) notifier.local.ring('work', queue)
  if (listed !== 1) await confirmListed(context, partition)
  const outcomes = jobs.map(({ id }, at) => outcomeOf(answers.length === 0 ? PUSHED : answers[at], id))
  for (const { id } of outcomes) locations.remember(id, partition)
  return outcomes
}

/** Jobs that are pushed together mostly differ in nothing but their data. `which`: of each job, where its values stand, from 1; null: all in the first. */
function distinctValues(jobs: readonly NewJob[]): { values: unknown[][]; which: number[] | null } {
  const values: unknown[][] = []
  const plain: number[] = []
  const which = jobs.map(({ priority, delay, runAt, attempts, timeout, group, key, trace, cost = 1 }) => {
    const timed = delay !== 0 || runAt !== null || attempts !== null || timeout !== null
    const isPlain = !timed && group === null && key === null && trace === null && cost === 1
    const known = isPlain ? plain[priority] : undefined
    if (known !== undefined) return known
    const value = [priority, delay, runAt, attempts, timeout, group, key, trace]
    const at = values.push(cost === 1 ? value : [...value, cost])
    if (isPlain) plain[priority] = at
    return at
  })
  return { values, which: values.length === 1 ? null : which }
}

const PUSHED = 0

function outcomeOf(answer: unknown, id: string): PushOutcome {
  if (Buffer.isBuffer(answer)) return { status: 'existing', id: idText(answer) }
  return { status: answer === PUSHED ? 'pushed' : 'full', id }
}
