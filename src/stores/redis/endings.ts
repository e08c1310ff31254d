/** What workers tell of their claims: complete, fail, release, extend. */
import type {
  ClaimedJob,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  Hold,
  HoldOutcome,
} from '../../store.ts'
import type { Claimer } from './claimer.ts'
import { completeInput, extendInput, failInput, type Input, releaseInput } from './inputs.ts'
import { extendOutcomes, failOutcomes, holdOutcomes } from './outputs.ts'
import type { Partition } from './partition.ts'
import { indexOf } from './queues.ts'
import type { ScriptName } from './scripts.ts'
import { settled } from './settled.ts'
import type { Shared } from './shared.ts'

interface Operation<Item, Outcome> {
  script: ScriptName
  /** @param again one of the items may have been told before */
  input: (partition: Partition, items: readonly Item[], again: boolean) => Input
  outcomes: (reply: Buffer, count: number) => Outcome[]
}

export class Endings {
  readonly #shared: Shared
  readonly #claimer: Claimer
  /** Claims whose ending was told without an answer: it may have taken effect, and will be told again. */
  readonly #doubtful = new WeakSet<ClaimedJob>()
  #anyDoubt = false

  constructor(shared: Shared, claimer: Claimer) {
    this.#shared = shared
    this.#claimer = claimer
  }

  async complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    const outcomes = await this.#tell(queue, completions, {
      script: 'complete',
      input: (partition, items, again) => completeInput(this.#shared.now(), partition, again, items),
      outcomes: holdOutcomes,
    })
    for (const [i, { id }] of completions.entries()) if (outcomes[i] === 'ok') this.#shared.bells.finished(queue, id)
    return outcomes
  }

  async fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    const outcomes = await this.#tell(queue, failures, {
      script: 'fail',
      input: (partition, items, again) => failInput(this.#shared.now(), partition, again, items),
      outcomes: failOutcomes,
    })
    for (const [i, { id, delay }] of failures.entries()) {
      if (outcomes[i] === 'dead') this.#shared.bells.finished(queue, id)
      else if (outcomes[i] === 'retry' && delay === 0) this.#shared.bells.work(queue)
    }
    return outcomes
  }

  async release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    const outcomes = await this.#tell(queue, holds, {
      script: 'release',
      input: (partition, items, again) => releaseInput(this.#shared.now(), partition, again, items),
      outcomes: holdOutcomes,
    })
    if (outcomes.includes('ok')) this.#shared.bells.work(queue)
    return outcomes
  }

  extend(queue: string, lease: number, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    return this.#tell(queue, extensions, {
      script: 'extend',
      input: (partition, items) => extendInput(this.#shared.now(), partition, lease, items),
      outcomes: extendOutcomes,
    })
  }

  async #tell<Item extends Hold, Outcome>(
    queue: string,
    items: readonly Item[],
    operation: Operation<Item, Outcome | 'stale'>,
  ): Promise<(Outcome | 'stale')[]> {
    this.#shared.link.assertOpen()
    if (items.length === 0) return []
    const partitions = this.#shared.queues.known(queue) ?? (await this.#shared.queues.look(queue))
    const [only] = partitions
    try {
      return only !== undefined && partitions.length === 1
        ? await this.#tellOne(only, items, operation)
        : await this.#tellAll(partitions, items, operation)
    } catch (error) {
      // All of them, since all are told again: those of a partition that answered have ended.
      this.#anyDoubt = true
      for (const { claim } of items) if (claim !== undefined) this.#doubtful.add(claim)
      throw error
    }
  }

  async #tellAll<Item extends Hold, Outcome>(
    partitions: readonly Partition[],
    items: readonly Item[],
    operation: Operation<Item, Outcome | 'stale'>,
  ): Promise<(Outcome | 'stale')[]> {
    const outcomes: (Outcome | 'stale')[] = items.map(() => 'stale')
    const ask = async (partition: Partition | undefined, places: readonly number[]) => {
      if (partition === undefined || places.length === 0) return
      const some = places.flatMap((at) => items[at] ?? [])
      for (const [i, outcome] of (await this.#tellOne(partition, some, operation)).entries()) {
        if (outcome !== 'stale') outcomes[places[i] ?? 0] = outcome
      }
    }
    const home = items.map(({ id, claim }) => this.#claimer.partitionOf(claim) ?? indexOf(partitions, id, null))
    await all(
      partitions.map((partition, index) =>
        ask(
          partition,
          home.flatMap((it, at) => (it === index ? [at] : [])),
        ),
      ),
    )
    // A job with a key is where its key says, which a claim by id and fence alone does not tell.
    const lost = (index: number) => home.flatMap((it, at) => (outcomes[at] === 'stale' && it !== index ? [at] : []))
    await all(partitions.map((partition, index) => ask(partition, lost(index))))
    return outcomes
  }

  async #tellOne<Item extends Hold, Outcome>(
    partition: Partition,
    items: readonly Item[],
    { script, input, outcomes }: Operation<Item, Outcome>,
  ): Promise<Outcome[]> {
    const again = this.#anyDoubt && items.some(({ claim }) => claim !== undefined && this.#doubtful.has(claim))
    const { bytes, againAt } = input(partition, items, again)
    const reply = await this.#shared.link.call(script, partition, bytes, { againAt, safe: script !== 'extend' })
    return outcomes(reply, items.length)
  }
}

async function all(calls: readonly Promise<void>[]): Promise<void> {
  const { failure } = await settled(calls)
  if (failure !== undefined) throw failure.reason
}
