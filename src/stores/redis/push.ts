/** Pushes: each job to its queue's partition, all in one round trip. */
import type { NewJob, PushOutcome } from '../../store.ts'
import type { Configured } from './configure.ts'
import { idBytes, idText } from './ids.ts'
import type { Lookup } from './lookup.ts'
import type { Partition } from './partition.ts'
import { indexOf } from './queues.ts'
import { settled } from './settled.ts'
import { pieces, type Shared } from './shared.ts'
import { encodedBytes, valuesOf } from './wire.ts'

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

  /** Rejects when any part of it was not acknowledged. What was stored of it all the same is found there when the push is repeated. */
  async push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const { link, queues } = this.#shared
    link.assertOpen()
    const groups = new Map<Partition, number[]>()
    for (const [at, { queue, id, key }] of jobs.entries()) {
      const partitions = queues.known(queue) ?? (await queues.create(queue))
      const partition = partitions[indexOf(partitions, id, key)]
      if (partition === undefined) continue
      const group = groups.get(partition)
      if (group === undefined) groups.set(partition, [at])
      else group.push(at)
    }
    const outcomes: PushOutcome[] = jobs.map(({ id }) => ({ status: 'full', id }))
    const calls = [...groups].flatMap(([partition, places]) =>
      pieces(places).map(async (some) => {
        const own = await this.#pushTo(
          partition,
          some.flatMap((at) => jobs[at] ?? []),
        )
        for (const [index, outcome] of own.entries()) outcomes[some[index] ?? 0] = outcome
      }),
    )
    const { failure } = await settled(calls)
    if (failure !== undefined) throw failure.reason
    return outcomes
  }

  async #pushTo(partition: Partition, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const { queue } = partition
    let repeated = false
    const inDoubt = () => {
      repeated = true
    }
    const items = jobs.flatMap((job) => [idBytes(job.id), encodedBytes(job.data), valuesOf(job)])
    const [known, ...answers] = await this.#shared.ask('push', partition, [], items, { safe: true, inDoubt })
    if (known === 0) this.#configured.lost(queue)
    if (jobs.some(({ delay, runAt }) => runAt !== null || delay === 0)) this.#shared.bells.work(queue)
    const outcomes = jobs.map(({ id }, at) => outcomeOf(answers[at], id))
    for (const { id } of outcomes) this.#lookup.remember(id, partition)
    return repeated ? corrected(outcomes, jobs) : outcomes
  }
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
