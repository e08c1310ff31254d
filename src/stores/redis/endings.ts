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
import { idBytes, idsBytes } from './ids.ts'
import type { Arg } from './link.ts'
import type { Partition } from './partition.ts'
import { indexOf } from './queues.ts'
import type { ScriptName } from './scripts.ts'
import { settled } from './settled.ts'
import { pieces, type Shared } from './shared.ts'
import { encodedOrNothing, errorBytes } from './wire.ts'

interface Operation<Item, Outcome> {
  script: ScriptName
  head?: (items: readonly Item[]) => readonly unknown[]
  args: (items: readonly Item[]) => readonly Arg[]
  /** What its answers stand for. */
  outcomes: readonly Outcome[]
}

const HOLD_OUTCOMES = ['ok', 'stale'] as const
const FAIL_OUTCOMES = ['retry', 'stale', 'dead'] as const
const EXTEND_OUTCOMES = ['ok', 'stale', 'cancelled'] as const

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
      head: (items) => [alikeOrAll(items.map(({ fence }) => fence))],
      args: (items) => {
        const ids = idsBytes(items)
        if (items.every(({ result }) => result === null)) return [ids]
        return [ids, ...items.map(({ result }) => encodedOrNothing(result))]
      },
      outcomes: HOLD_OUTCOMES,
    })
    for (const [i, { id }] of completions.entries())
      if (outcomes[i] === 'ok') this.#shared.bells.ring('finished', queue, id)
    return outcomes
  }

  async fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    const outcomes = await this.#tell(queue, failures, {
      script: 'fail',
      args: (items) =>
        items.flatMap(({ id, fence, error, delay }) => [idBytes(id), fence, errorBytes(error), delayText(delay)]),
      outcomes: FAIL_OUTCOMES,
    })
    for (const [i, { id, delay }] of failures.entries()) {
      if (outcomes[i] === 'dead') this.#shared.bells.ring('finished', queue, id)
      else if (outcomes[i] === 'retry' && delay === 0) this.#shared.bells.ring('work', queue)
    }
    return outcomes
  }

  async release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    const outcomes = await this.#tell(queue, holds, {
      script: 'release',
      args: (items) => items.flatMap(({ id, fence }) => [idBytes(id), fence]),
      outcomes: HOLD_OUTCOMES,
    })
    if (outcomes.includes('ok')) this.#shared.bells.ring('work', queue)
    return outcomes
  }

  extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    return this.#tell(queue, extensions, {
      script: 'extend',
      head: () => [lease],
      args: (items) => items.flatMap(({ id, fence, progress }) => [idBytes(id), fence, encodedOrNothing(progress)]),
      outcomes: EXTEND_OUTCOMES,
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
    { script, head = () => [], args, outcomes }: Operation<Item, Outcome | 'stale'>,
  ): Promise<(Outcome | 'stale')[]> {
    const answers = await Promise.all(
      pieces(items).map((some) => {
        const again = this.#anyDoubt && some.some(({ claim }) => claim !== undefined && this.#doubtful.has(claim))
        return this.#shared.ask(script, partition, head(some), args(some), { again, safe: script !== 'extend' })
      }),
    )
    return answers.flat().map((answer) => outcomes[Number(answer)] ?? 'stale')
  }
}

/** Jobs of one claim mostly have the same fence. */
function alikeOrAll(fences: readonly number[]): number | readonly number[] {
  const [first = 0] = fences
  return fences.every((fence) => fence === first) ? first : fences
}

/** As `fail.lua` takes it. */
function delayText(delay: Failure['delay']): string {
  if (delay === null) return ''
  return delay === 'backoff' ? `r${Math.random()}` : String(delay)
}

async function all(calls: readonly Promise<void>[]): Promise<void> {
  const { failure } = await settled(calls)
  if (failure !== undefined) throw failure.reason
}
