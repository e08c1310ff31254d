/**
 * What a shared call does about a lock that another transaction holds. It waits for 200 ms at the most. Then its items go in halves, until
 * the one that waits is found. That one goes alone, with all of the time that a call has. Later items that need the same wait for it.
 *
 *   shared call ──held──► halves ──held──► alone ──answer──► those that waited go on
 *                                            └──deadline──► StoreBusy, which tells who holds it; for those that waited, too
 */
import { randomInt } from 'node:crypto'
import { MillpondError } from '../../values/errors/errors.ts'
import { isError } from '../../values/runtime/realms.ts'
import type { Calls } from './connection/calls.ts'
import { stateOf } from './errors.ts'

/** Calls that wait alone, at once: each has a connection. */
const MOST_ALONE = 2
/** Ms that such a call has at least, however long its item waited for its turn. */
const LEAST = 100
/** Ms for which items go alone at once after one of their kind has waited in vain. */
const SUSPICION = 60_000

/** Whether a call has waited for another transaction's lock for as long as it may. */
export const isHeld = (error: unknown): boolean => isError(error) && /^(55P03|40P01)$/.test(stateOf(error.cause))

/** A call, and its values. */
export type Sent = [call: string, values: readonly unknown[]]

/** How a call of items is made and read. */
export interface Parts<Item, Answer, Out> {
  /** The call that carries these items. */
  sent: (items: readonly Item[]) => Sent
  /** What its answer says, in the order of the items. */
  read: (answer: Answer, items: readonly Item[]) => readonly Out[]
  /** What is said of an item that is held; unless given, it waits alone. */
  held?: Out | undefined
}

/**
 * A shared call that nothing orders: its items go apart where one is held, and those that are wait beside each other.
 * @returns what all calls that were made have said, in the order of the items. It rejects when all are over.
 */
export async function apart<Item, Answer, Out>(
  calls: Calls,
  lanes: Lanes<Sent, unknown>,
  items: readonly Item[],
  { sent, read, held }: Parts<Item, Answer, Out>,
): Promise<Out[]> {
  const said: (readonly Out[] | Promise<readonly Out[]>)[] = []
  const send = async (some: readonly Item[], isHalf: boolean): Promise<void> => {
    const call = sent(some)
    try {
      said.push(read(await calls.shared<Answer>(...call, isHalf), some))
    } catch (error) {
      if (!isHeld(error)) {
        said.push(failed(error))
      } else if (some.length > 1) {
        const middle = Math.ceil(some.length / 2)
        await send(some.slice(0, middle), true)
        await send(some.slice(middle), true)
      } else if (held === undefined) {
        const alone = lanes.send(call).then((answer) => read(answer as Answer, some))
        alone.catch(() => {})
        said.push(alone)
      } else said.push([held])
    }
  }
  await send(items, false)
  await Promise.allSettled(said)
  return (await Promise.all(said)).flat()
}

/** A rejection that is looked at later. */
function failed(error: unknown): Promise<never> {
  const rejection = Promise.reject(error)
  rejection.catch(() => {})
  return rejection
}

export class Lanes<Item, Out> {
  readonly #calls: Calls
  readonly #namesOf: (item: Item) => readonly string[]
  readonly #alone: (item: Item, lane: number, deadline: number) => Promise<Out>
  readonly #lanes = new Map<string, Promise<void>>()
  /** What the last item waited for in vain, and when that was. */
  readonly #vain = new Map<string, number>()
  #underWay = 0
  readonly #turns: (() => void)[] = []

  /** @param namesOf what an item may have to wait for @param alone sends one, see `Calls.alone` */
  constructor(
    calls: Calls,
    namesOf: (item: Item) => readonly string[],
    alone: (item: Item, lane: number, deadline: number) => Promise<Out>,
  ) {
    this.#calls = calls
    this.#namesOf = namesOf
    this.#alone = alone
  }

  get isEmpty(): boolean {
    return this.#lanes.size === 0 && this.#vain.size === 0
  }

  /** Whether the item is to go alone at once, as the last one that needed the same waited in vain. */
  isSuspect(item: Item): boolean {
    const since = performance.now() - SUSPICION
    for (const [name, at] of this.#vain) if (at < since) this.#vain.delete(name)
    return this.#vain.size > 0 && this.#namesOf(item).some((name) => this.#vain.has(name))
  }

  /** What the item has to wait for; undefined: nothing. It rejects where that failed. */
  before(item: Item): Promise<void> | undefined {
    if (this.#lanes.size === 0) return undefined
    const name = this.#namesOf(item).find((each) => this.#lanes.has(each))
    return name === undefined ? undefined : this.#lanes.get(name)
  }

  /** Sends the item alone. */
  send(item: Item): Promise<Out> {
    const names = this.#namesOf(item)
    const answer = this.#inTurn(item)
    answer.then(
      () => {
        for (const name of names) this.#vain.delete(name)
      },
      (error: unknown) => {
        if (!(error instanceof MillpondError) || error.code !== 'StoreBusy') return
        for (const name of names) this.#vain.set(name, performance.now())
      },
    )
    const lane = answer
      .finally(() => {
        for (const name of names) if (this.#lanes.get(name) === lane) this.#lanes.delete(name)
      })
      .then(() => {})
    lane.catch(() => {})
    for (const name of names) this.#lanes.set(name, lane)
    return answer
  }

  async #inTurn(item: Item): Promise<Out> {
    const { deadline } = this.#calls
    const since = performance.now()
    if (this.#underWay >= MOST_ALONE) await new Promise<void>((resolve) => this.#turns.push(resolve))
    this.#underWay++
    const number = randomInt(2 ** 31)
    const left = Math.max(LEAST, Math.ceil(deadline - (performance.now() - since)))
    // Shortly before the server gives it up: only while it waits does the server know for whom.
    let holders: Promise<string> | undefined
    const look = setTimeout(() => {
      holders = this.#calls.holders(number)
    }, left * 0.8).unref()
    try {
      return await this.#alone(item, number, left)
    } catch (error) {
      const found = await holders
      if (!(error instanceof MillpondError) || error.code !== 'StoreBusy' || !found) throw error
      throw new MillpondError('StoreBusy', `${found} holds what is needed; what waited for it was not changed`, {
        cause: error,
      })
    } finally {
      clearTimeout(look)
      this.#underWay--
      this.#turns.shift()?.()
    }
  }
}
