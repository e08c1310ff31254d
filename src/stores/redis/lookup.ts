/** Operations by id alone. An id says nothing of its queue, so all partitions are asked, in one round trip. */
import type { FinalState } from '../../store.ts'
import { idsInput } from './inputs.ts'
import { type CancelOutcome, cancelOutcomes, type Found, foundReply } from './outputs.ts'
import type { Partition } from './partition.ts'
import { settled, type Trouble } from './settled.ts'
import type { Shared } from './shared.ts'

export interface Located extends Found {
  partition: Partition
}

export class Lookup {
  readonly #shared: Shared

  constructor(shared: Shared) {
    this.#shared = shared
  }

  find(ids: readonly string[]): Promise<(Located | null)[]> {
    const { link, now } = this.#shared
    return this.#ask(ids, async (partition, some) => {
      const reply = await link.call('find', partition, idsInput(now(), partition, some).bytes)
      return foundReply(reply, partition.queue).map((found) => (found === null ? null : { ...found, partition }))
    })
  }

  async cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    const { link, bells, now } = this.#shared
    const outcomes = await this.#ask<CancelOutcome>(ids, async (partition, some) => {
      const reply = await link.call('cancel', partition, idsInput(now(), partition, some).bytes, { safe: true })
      const answers = cancelOutcomes(reply)
      for (const [i, answer] of answers.entries()) {
        const id = some[i]
        if (id === undefined || (answer !== 'waited' && answer !== 'ran')) continue
        bells.cancelled(partition.queue, id)
        bells.finished(partition.queue, id)
        if (answer === 'waited') bells.room(partition.queue)
      }
      return answers
    })
    return outcomes.map((outcome) => (outcome === 'waited' || outcome === 'ran' ? 'cancelled' : outcome))
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
    const answers: (T | null)[] = ids.map(() => null)
    if (ids.length === 0) return answers
    let trouble: Trouble | undefined
    const fill = async (partitions: readonly Partition[], places: readonly number[]) => {
      const some = places.flatMap((at) => ids[at] ?? [])
      const { replies, failure } = await settled(partitions.map((partition) => ask(partition, some)))
      trouble ??= failure
      for (const reply of replies) for (const [i, at] of places.entries()) answers[at] ??= reply?.[i] ?? null
    }
    const unknown = () => answers.flatMap((answer, at) => (answer === null ? [at] : []))
    const first = queues.allKnown()
    await fill(first, unknown())
    if (unknown().length === 0) return answers
    const known = new Set(first)
    const { registered, failure } = await queues.reachable()
    trouble ??= failure
    await fill(
      registered.filter((partition) => !known.has(partition)),
      unknown(),
    )
    if (trouble !== undefined && unknown().length > 0) throw trouble.reason
    return answers
  }
}
