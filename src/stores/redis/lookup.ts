/**
 * Operations by id alone. An id says nothing of its queue: of jobs that were pushed or claimed here a while ago it is remembered, for others all
 * partitions of a hash tag are asked in one call, so that a look-up is at most `BUCKETS` calls for any number of queues.
 */
import type { FinalState } from '../../store.ts'
import { idBytes } from './ids.ts'
import type { Partition } from './partition.ts'
import { type CancelOutcome, cancelOutcomes, type Found, foundReply } from './replies.ts'
import { settled, type Trouble } from './settled.ts'
import { cut, pieces, type Shared } from './shared.ts'
import { numberIn } from './wire.ts'

export interface Located extends Found {
  partition: Partition
}

/** Jobs whose partition is remembered. */
const REMEMBERED = 10_000
/** Keys and ids of one call to `locate`, which looks each up in each. */
const MOST_KEYS = 250
const MOST_LOOKS = 5_000

export class Lookup {
  readonly #shared: Shared
  /** The last ones, and those before them: when the first are as many as may be, they become the second, which are forgotten. */
  #last = new Map<string, Partition>()
  #before = new Map<string, Partition>()

  constructor(shared: Shared) {
    this.#shared = shared
  }

  remember(id: string, partition: Partition): void {
    this.#last.set(id, partition)
    if (this.#last.size < REMEMBERED / 2) return
    this.#before = this.#last
    this.#last = new Map()
  }

  async find(ids: readonly string[]): Promise<(Located | null)[]> {
    return this.#ask(ids, async (partition, some) => {
      const reply = await this.#shared.ask('find', partition, [], some.map(idBytes))
      const found = new Map(foundReply(reply, partition.queue).map((one) => [one.record.id, { ...one, partition }]))
      return some.map((id) => found.get(id) ?? null)
    })
  }

  async cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    const answers = new Map<string, (FinalState | null)[]>()
    // An id that is named again is cancelled again: it may be gone by then.
    for (let rest = [...ids]; rest.length > 0; ) {
      const some = [...new Set(rest)]
      for (const [i, answer] of (await this.#cancel(some)).entries()) {
        const id = some[i] ?? ''
        answers.set(id, [...(answers.get(id) ?? []), answer])
      }
      const left = new Set(some)
      rest = rest.filter((id) => !left.delete(id))
    }
    return ids.map((id) => answers.get(id)?.shift() ?? null)
  }

  async #cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    const { bells } = this.#shared
    const outcomes = await this.#ask<CancelOutcome>(ids, async (partition, some) => {
      const answers = cancelOutcomes(await this.#shared.ask('cancel', partition, [], some.map(idBytes), { safe: true }))
      for (const [i, answer] of answers.entries()) {
        const id = some[i]
        if (id === undefined || (answer !== 'waited' && answer !== 'ran')) continue
        bells.ring('cancelled', partition.queue, id)
        bells.ring('finished', partition.queue, id)
        if (answer === 'waited') bells.ring('room', partition.queue)
      }
      return answers
    })
    return outcomes.map((outcome) => (outcome === 'waited' || outcome === 'ran' ? 'cancelled' : outcome))
  }

  async #locate(
    partitions: readonly Partition[],
    ids: readonly string[],
    put: (partition: Partition, id: string) => void,
  ): Promise<Trouble | undefined> {
    const byTag = new Map<string, Partition[]>()
    for (const partition of partitions) {
      const some = byTag.get(partition.tag)
      if (some === undefined) byTag.set(partition.tag, [partition])
      else some.push(partition)
    }
    const calls = [...byTag].flatMap(([tag, all]) =>
      cut(all, MOST_KEYS).flatMap((some) =>
        cut(ids, Math.max(1, Math.floor(MOST_LOOKS / some.length))).map(async (asked) => {
          const target = { tag, keys: some.map((partition) => partition.key('jobs')) }
          const answer = await this.#shared.link.call('locate', target, asked.map(idBytes))
          for (const [i, number] of answer.entries()) {
            const partition = some[numberIn(number) - 1]
            const id = asked[i]
            if (partition !== undefined && id !== undefined) put(partition, id)
          }
        }),
      ),
    )
    return (await settled(calls)).failure
  }

  /**
   * The answer of the first partition that knows the id. Queues that are new to this process are asked for what the others don't know.
   * Rejects where nobody that answered knows an id, and somebody did not answer.
   */
  async #ask<T>(
    ids: readonly string[],
    ask: (partition: Partition, ids: readonly string[]) => Promise<(T | null)[]>,
  ): Promise<(T | null)[]> {
    const { link, queues } = this.#shared
    link.assertOpen()
    const answers = new Map<string, T>()
    if (ids.length === 0) return []
    let trouble: Trouble | undefined
    const fill = async (places: ReadonlyMap<Partition, readonly string[]>) => {
      const calls = [...places].flatMap(([partition, own]) =>
        pieces(own).map(async (some) => ({ some, replies: await ask(partition, some) })),
      )
      const { replies, failure } = await settled(calls)
      trouble ??= failure
      for (const reply of replies) {
        for (const [i, answer] of reply?.replies.entries() ?? []) {
          const id = reply?.some[i]
          if (id !== undefined && answer !== null && !answers.has(id)) answers.set(id, answer)
        }
      }
    }
    const unknown = () => [...new Set(ids)].filter((id) => !answers.has(id))
    const among = async (partitions: readonly Partition[]) => {
      const places = new Map<Partition, string[]>()
      const put = (partition: Partition, id: string) => places.set(partition, [...(places.get(partition) ?? []), id])
      const [only] = partitions
      if (partitions.length === 1 && only !== undefined) for (const id of unknown()) put(only, id)
      else if (unknown().length > 0) trouble = (await this.#locate(partitions, unknown(), put)) ?? trouble
      await fill(places)
    }
    const remembered = new Map<Partition, string[]>()
    for (const id of unknown()) {
      const partition = this.#last.get(id) ?? this.#before.get(id)
      if (partition !== undefined) remembered.set(partition, [...(remembered.get(partition) ?? []), id])
    }
    await fill(remembered)
    const first = queues.allKnown()
    if (unknown().length > 0) await among(first)
    if (unknown().length > 0) {
      const known = new Set(first)
      const { partitions, failure } = await queues.reachable()
      trouble ??= failure
      await among(partitions.filter((partition) => !known.has(partition)))
    }
    if (trouble !== undefined && unknown().length > 0) throw trouble.reason
    return ids.map((id) => answers.get(id) ?? null)
  }
}
