/** The stores, and the ways to ask them: one, each about its own, or all. */
import type { Bell, Operations, Store } from '../../store.ts'
import { MillpondError, storeError } from '../../values/errors/errors.ts'
import { answeredBeside } from '../../values/operations/answered-beside.ts'
import type { Member } from './member.ts'

export class Members {
  readonly #all: readonly Member[]
  readonly #route: (queue: string) => number

  constructor(all: readonly Member[], route: (queue: string) => number) {
    this.#all = all
    this.#route = route
  }

  of(queue: string): Member {
    return this.#all[this.#route(queue)] as Member
  }

  /** @throws AcrossShards */
  one(jobs: readonly { queue: string }[]): Member {
    const queues = [...new Set(jobs.map(({ queue }) => queue))]
    const [first = ''] = queues
    const other = queues.find((queue) => this.of(queue) !== this.of(first))
    if (other !== undefined) throw this.across(first, other)
    return this.of(first)
  }

  across(queue: string, other: string): MillpondError {
    const places = `${queue} is in ${this.of(queue).name}, ${other} in ${this.of(other).name}`
    return new MillpondError('AcrossShards', `jobs that belong together must be in one store: ${places}`, { queue })
  }

  /** Asks each member about its items. @param failed the outcome where only some members failed; unset: the call rejects */
  async split<Item extends { queue: string }, Out>(
    items: readonly Item[],
    use: (operations: Operations, own: readonly Item[]) => Promise<readonly Out[]>,
    failed?: (item: Item, error: MillpondError) => Out,
  ): Promise<Out[]> {
    const groups = [...Map.groupBy(items.keys(), (at) => this.of(items[at]?.queue ?? ''))]
    const outs: Out[] = []
    if (groups.length <= 1) return [...(await this.one(items).call((operations) => use(operations, items)))]
    const ask = async ([member, places]: (typeof groups)[number]) => {
      const own = places.map((at) => items[at] as Item)
      const answers = await member
        .ask((operations) => use(operations, own))
        .catch((error: unknown) => {
          failures.push(error)
          return failed && own.map((item) => failed(item, storeError(error, 'the call')))
        })
      for (const [index, at] of places.entries()) if (answers !== undefined) outs[at] = answers[index] as Out
    }
    const failures: unknown[] = []
    await Promise.all(groups.map(ask))
    if (failures.length > 0 && (failed === undefined || failures.length === groups.length)) throw failures[0]
    return outs
  }

  /** Asks all. @param isEnough the answers so far need no others @throws the first failure, unless the answers are enough */
  ask<T>(use: (operations: Operations) => Promise<T>, isEnough: (answers: T[]) => boolean = () => false): Promise<T[]> {
    const answers: T[] = []
    return new Promise((resolve, reject) => {
      const asked = this.#all.map(async (member) => {
        answers.push(await member.ask(use))
        if (isEnough(answers)) resolve(answers)
      })
      Promise.allSettled(asked).then((ends) => {
        const failure = ends.find(({ status }) => status === 'rejected')
        if (failure?.status === 'rejected') reject(failure.reason)
        else resolve(answers)
      })
    })
  }

  /** All but that of the queue; what fails is left. */
  async others<T>(queue: string, use: (operations: Operations) => Promise<T>): Promise<void> {
    const others = this.#all.filter((member) => member !== this.of(queue))
    await Promise.allSettled(others.map((member) => member.ask(use)))
  }

  /** Those that can be reached. @throws the first failure, if all failed */
  async reached<T>(use: (operations: Operations) => Promise<T>): Promise<T[]> {
    const ends = await Promise.allSettled(this.#all.map((member) => member.ask(use)))
    const answers = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    if (answers.length === 0) for (const end of ends) if (end.status === 'rejected') throw end.reason
    return answers
  }

  /** Asks all about some ids. One that knows an id answers for it; null: no store knows it. */
  async byId<T>(count: number, use: (operations: Operations) => Promise<readonly (T | null)[]>): Promise<(T | null)[]> {
    const found: (T | null)[] = new Array(count).fill(null)
    const note = async (operations: Operations) => {
      for (const [at, one] of (await use(operations)).entries()) found[at] ??= one
    }
    await this.ask(note, () => !found.includes(null)).catch((error: unknown) => answeredBeside(error, found))
    return found
  }

  /** @returns a store that is open @throws what is no passing trouble, or if none can be reached */
  async open(): Promise<Store> {
    const ends = await Promise.allSettled(this.#all.map((member) => member.opened()))
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [storeError(end.reason, 'opening')] : []))
    const known = ends.find((end) => end.status === 'fulfilled')
    const failure = failures.find(({ retryable }) => !retryable) ?? (known === undefined ? failures[0] : undefined)
    if (failure === undefined && known !== undefined) return known.value
    await this.close()
    throw failure
  }

  listen(listener: (bell: Bell) => void): () => void {
    const stops = this.#all.map((member) => member.listen(listener))
    return () => {
      for (const stop of stops) stop()
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((member) => member.close()))
  }
}
