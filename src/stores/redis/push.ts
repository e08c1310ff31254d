/** Pushes: each job to its queue's partition, all in one round trip. */
import type { NewJob, PushOutcome } from '../../store.ts'
import { pushInput } from './inputs.ts'
import { pushOutcomes } from './outputs.ts'
import type { Partition } from './partition.ts'
import { indexOf } from './queues.ts'
import { settled } from './settled.ts'
import type { Shared } from './shared.ts'

/** Rejects when any part of it was not acknowledged. What was stored of it all the same is found there when the push is repeated. */
export async function push(shared: Shared, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
  shared.link.assertOpen()
  const [first] = jobs
  if (first === undefined) return []
  const alone = shared.queues.known(first.queue)
  const [only] = alone ?? []
  // Nearly always: one queue, one partition.
  if (only !== undefined && alone?.length === 1 && jobs.every(({ queue }) => queue === first.queue)) {
    return pushTo(shared, only, jobs)
  }
  const groups = new Map<Partition, number[]>()
  for (const [at, { queue, id, key }] of jobs.entries()) {
    const partitions = shared.queues.known(queue) ?? (await shared.queues.create(queue))
    const partition = partitions[indexOf(partitions, id, key)]
    if (partition === undefined) continue
    const group = groups.get(partition)
    if (group === undefined) groups.set(partition, [at])
    else group.push(at)
  }
  const outcomes: PushOutcome[] = jobs.map(({ id }) => ({ status: 'full', id }))
  const pushes = [...groups].map(async ([partition, places]) => {
    const some = places.flatMap((at) => jobs[at] ?? [])
    for (const [index, outcome] of (await pushTo(shared, partition, some)).entries())
      outcomes[places[index] ?? 0] = outcome
  })
  const { failure } = await settled(pushes)
  if (failure !== undefined) throw failure.reason
  return outcomes
}

async function pushTo(
  { link, bells, now }: Shared,
  partition: Partition,
  jobs: readonly NewJob[],
): Promise<PushOutcome[]> {
  const { bytes } = pushInput(now(), partition, jobs)
  const work = jobs.some(({ delay, runAt }) => runAt !== null || delay === 0)
  let repeated = false
  const inDoubt = () => {
    repeated = true
  }
  const reply = await link.call('push', partition, bytes, { safe: true, inDoubt })
  if (work) bells.work(partition.queue)
  const outcomes = pushOutcomes(reply, jobs)
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
