/** Pushes: each job to its queue's partition, all in one round trip. */
import type { NewJob, PushOutcome } from '../../store.ts'
import { pushInput } from './inputs.ts'
import { pushReply } from './outputs.ts'
import type { Partition } from './partition.ts'
import { indexOf } from './queues.ts'
import { settled } from './settled.ts'
import type { Shared } from './shared.ts'

/**
 * Rejects when any part of it was not acknowledged. What was stored of it all the same is found there when the push is repeated.
 *
 *   queue known ──push──► stored
 *        │          └──► refused: it is not listed, and may have been removed ──┐
 *   not known ───────────────────────────────────────────────────────────────► registered ──push──► stored ──► registered once more, listed
 */
export async function push(shared: Shared, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  shared.link.assertOpen()
  const [first] = jobs
  if (first === undefined) return []
  const alone = shared.queues.known(first.queue)
  const [only] = alone ?? []
  // Nearly always: one queue, one partition.
  if (only !== undefined && alone?.length === 1 && jobs.every(({ queue }) => queue === first.queue)) {
    return (await pushTo(shared, only, jobs)) ?? pushEach(shared, jobs, true)
  }
  return pushEach(shared, jobs, false)
}

/** @param anew what is known of the queues is out of date */
async function pushEach(shared: Shared, jobs: readonly NewJob[], anew: boolean): Promise<PushOutcome[]> {
  const { queues } = shared
  const homes = new Map<string, readonly Partition[]>()
  const groups = new Map<Partition, number[]>()
  for (const [at, { queue, id, key }] of jobs.entries()) {
    let partitions = homes.get(queue)
    if (partitions === undefined) {
      if (anew) queues.forget(queue)
      partitions = queues.known(queue) ?? (await queues.create(queue))
      homes.set(queue, partitions)
    }
    const partition = partitions[indexOf(partitions, id, key)]
    if (partition === undefined) continue
    const group = groups.get(partition)
    if (group === undefined) groups.set(partition, [at])
    else group.push(at)
  }
  const outcomes: PushOutcome[] = jobs.map(({ id }) => ({ status: 'full', id }))
  const pushes = [...groups].map(async ([partition, places]) => {
    const some = places.flatMap((at) => jobs[at] ?? [])
    const pushed = (await pushTo(shared, partition, some)) ?? (await pushEach(shared, some, true))
    for (const [index, outcome] of pushed.entries()) outcomes[places[index] ?? 0] = outcome
  })
  const { failure } = await settled(pushes)
  if (failure !== undefined) throw failure.reason
  return outcomes
}

/** @returns null where nothing was stored, since the partition is not listed */
async function pushTo(
  { link, queues, bells, now }: Shared,
  partition: Partition,
  jobs: readonly NewJob[],
): Promise<PushOutcome[] | null> {
  const { bytes } = pushInput(now(), partition, jobs)
  const work = jobs.some(({ delay, runAt }) => runAt !== null || delay === 0)
  let repeated = false
  const inDoubt = () => {
    repeated = true
  }
  const reply = pushReply(await link.call('push', partition, bytes, { safe: true, inDoubt }), jobs)
  if (reply === null) return null
  if (work) bells.work(partition.queue)
  if (reply.listed) partition.listed()
  else await queues.list(partition)
  const { outcomes } = reply
  return repeated ? corrected(outcomes, jobs) : outcomes
}

/** Of a push that was sent again: a job that is there under its own id is the one that the first try stored, whose answer was lost. */
function corrected(outcomes: readonly PushOutcome[], jobs: readonly NewJob[]): PushOutcome[] {
  const seen = new Set<string>()
  return outcomes.map((outcome, at) => {
    const id = jobs[at]?.id ?? ''
    // The second of two jobs with one id in one push was there already at the first try, too.
    if (outcome.status === 'full' || outcome.id !== id || seen.has(id)) return outcome
    seen.add(id)
    return { status: 'pushed', id }
  })
}
