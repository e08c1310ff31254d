/** Pushes: each job to its queue's partition, all in one round trip. */
import type { NewJob, PushOutcome } from '../../store.ts'
import type { Configured } from './configure.ts'
import { idsBytes, idText } from './ids.ts'
import type { Lookup } from './lookup.ts'
import type { Partition } from './partition.ts'
import { indexOf } from './queues.ts'
import { settled } from './settled.ts'
import { pieces, type Shared } from './shared.ts'
import { encodedBytes, isPlain, valuesOf } from './wire.ts'

export class Pusher {
  readonly #shared: Shared
  readonly #configured: Configured
  readonly #lookup: Lookup

  constructor(shared: Shared, configured: Configured, lookup: Lookup) {
    this.#shared = shared
    this.#configured = configured
    this.#lookup = lookup
  }

  /** Jobs of one lane go to one partition; of a queue that is not known yet, to one queue. */
  lane({ queue, id, key }: NewJob): string {
    const partitions = this.#shared.queues.known(queue)
    return partitions?.[indexOf(partitions, id, key)]?.part ?? queue
  }

  /**
   * Rejects when any part of it was not acknowledged. What was stored of it all the same is found there when the push is repeated.
   *
   *   queue known ──push──► stored
   *        │          └──► refused: it is not listed, and may have been removed ──┐
   *   not known ───────────────────────────────────────────────────────────────► registered ──push──► stored ──► registered once more, listed
   */
  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    this.#shared.link.assertOpen()
    return this.#pushEach(jobs, false)
  }

  /** @param anew what is known of the queues is out of date */
  async #pushEach(jobs: readonly NewJob[], anew: boolean): Promise<PushOutcome[]> {
    const { queues } = this.#shared
    const homes = new Map<string, readonly Partition[]>()
    const groups = new Map<Partition, number[]>()
    for (const [at, { queue, id, key }] of jobs.entries()) {
      const known = homes.get(queue) ?? (anew ? undefined : queues.known(queue))
      const partitions = known ?? (await queues.create(queue))
      homes.set(queue, partitions)
      const partition = partitions[indexOf(partitions, id, key)]
      if (partition === undefined) continue
      const group = groups.get(partition)
      if (group === undefined) groups.set(partition, [at])
      else group.push(at)
    }
    const outcomes: PushOutcome[] = jobs.map(({ id }) => ({ status: 'full', id }))
    const calls = [...groups].flatMap(([partition, places]) =>
      pieces(places).map(async (some) => {
        const own = some.flatMap((at) => jobs[at] ?? [])
        const pushed = (await this.#pushTo(partition, own)) ?? (await this.#pushEach(own, true))
        for (const [index, outcome] of pushed.entries()) outcomes[some[index] ?? 0] = outcome
      }),
    )
    const { failure } = await settled(calls)
    if (failure !== undefined) throw failure.reason
    return outcomes
  }

  /** @returns null where nothing was stored, since the partition is not listed */
  async #pushTo(partition: Partition, jobs: readonly NewJob[]): Promise<PushOutcome[] | null> {
    const { queue, floor } = partition
    let repeated = false
    const inDoubt = () => {
      repeated = true
    }
    const { values, which } = distinct(jobs)
    const items = [idsBytes(jobs), ...jobs.map(({ data }) => encodedBytes(data))]
    const head = [floor, values, which]
    const [listed, ...answers] = await this.#shared.ask('push', partition, head, items, { safe: true, inDoubt })
    if (listed !== 1) this.#configured.lost(queue)
    if (listed === undefined) return null
    if (jobs.some(({ delay, runAt }) => runAt !== null || delay === 0)) this.#shared.bells.ring('work', queue)
    if (listed === 1) partition.listed()
    else await this.#shared.list(partition)
    const outcomes = jobs.map(({ id }, at) => outcomeOf(answers[at], id))
    for (const { id } of outcomes) this.#lookup.remember(id, partition)
    return repeated ? corrected(outcomes, jobs) : outcomes
  }
}

/** Jobs that are pushed together mostly differ in nothing but their data. `which`: of each job, where its values stand, from 1; null: all in the first. */
function distinct(jobs: readonly NewJob[]): { values: unknown[][]; which: number[] | null } {
  const values: unknown[][] = []
  const byPriority: number[] = []
  const which = jobs.map((job) => {
    const known = isPlain(job) ? byPriority[job.priority] : undefined
    if (known !== undefined) return known
    const at = values.push(valuesOf(job))
    if (isPlain(job)) byPriority[job.priority] = at
    return at
  })
  return { values, which: values.length === 1 ? null : which }
}

function outcomeOf(answer: unknown, id: string): PushOutcome {
  if (Buffer.isBuffer(answer)) return { status: 'existing', id: idText(answer) }
  return { status: answer === 0 ? 'pushed' : 'full', id }
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
