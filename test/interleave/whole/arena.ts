/**
 * Opened whose calls cannot be stopped in their middle: each call is made as a whole, by a store of its own as another process has it. A session's
 * steps are to make a call and to take its answer. So calls follow each other in every order, or are under way at once.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../../src/store.ts'
import { JOB_STATES } from '../../../src/values/jobs/records.ts'
import type { Arena, Script } from '../arena.ts'
import { overLimit } from '../checks.ts'
import { type Calls, type Effect, type Operation, perform, storeCalls } from '../operations.ts'
import type { Path } from '../orders.ts'
import type { Caller, Processes } from '../processes.ts'
import type { World } from '../world.ts'

/** Ms for which a bell may be on its way; only a fault waits for so long. */
const ON_ITS_WAY = 1500
/** Ms after which a call counts as one that waits for the transaction that is open. */
const WAITS_AFTER = 20

/** One store per session, then that of the process that sleeps; or one for all. */
export interface Opened extends Processes {
  /** As of `Arena`; unset: never. */
  readonly forgets?: number
  /** Makes the process that sleeps hear a bell for that queue: then it has heard all before. Unset: it hears at once. */
  mark?(queue: string): Promise<unknown>
}

const SESSIONS = 3
const MARK = 'mark'

const isInTransaction = (operation: Operation | undefined): boolean =>
  operation?.kind === 'pushInTransaction' || operation?.kind === 'childInTransaction'

class WholeSession {
  readonly #calls: Calls
  readonly #commit: () => Promise<unknown>
  #world: World | undefined
  #left: Operation[] = []
  #call: Promise<void> | undefined
  #outcome: { effect?: Effect; error?: unknown } | undefined

  constructor(calls: Calls, commit: () => Promise<unknown>) {
    this.#calls = calls
    this.#commit = commit
  }

  begin(world: World, { operations }: Script): void {
    this.#world = world
    this.#left = [...operations]
  }

  get over(): boolean {
    return this.#left.length === 0
  }

  /** A call was made and its answer has not been taken. */
  get underWay(): boolean {
    return this.#call !== undefined
  }

  get answered(): boolean {
    return this.#outcome !== undefined
  }

  /** It holds a transaction open, once answered. */
  get inTransaction(): boolean {
    return this.underWay && isInTransaction(this.#left[0])
  }

  get beginsTransaction(): boolean {
    return !this.underWay && isInTransaction(this.#left[0])
  }

  get call(): Promise<void> {
    return this.#call ?? Promise.resolve()
  }

  /** @returns what went wrong */
  async step(): Promise<string | undefined> {
    const [next] = this.#left
    if (next === undefined || this.#world === undefined) return undefined
    if (this.#call === undefined) {
      this.#call = perform(this.#calls, next, this.#world).then(
        (effect) => {
          this.#outcome = { effect }
        },
        (error: unknown) => {
          this.#outcome = { error }
        },
      )
      return undefined
    }
    await this.#call
    const { effect, error } = this.#outcome ?? {}
    if (isInTransaction(next)) await this.#commit()
    effect?.()
    this.#call = undefined
    this.#outcome = undefined
    this.#left.shift()
    return error === undefined ? undefined : `${error} in ${next.kind}`
  }
}

export class WholeArena implements Arena {
  readonly #opened: Opened
  readonly #sessions: WholeSession[]
  readonly #heard = new Map<string, number>()
  readonly #stop: () => void
  readonly forgets: number
  readonly holdsRows = false
  readonly store: Store
  readonly calls: Calls

  constructor(opened: Opened) {
    this.#opened = opened
    const at = (index: number): Store => {
      const store = opened.stores[index] ?? opened.stores[0]
      if (store === undefined) throw new Error('no store')
      return store
    }
    const sleeping = at(SESSIONS)
    this.store = at(0)
    this.forgets = opened.forgets ?? Number.POSITIVE_INFINITY
    const transactions: (Caller | undefined)[] = []
    const callsOf = (session: number): Calls => {
      const calls = storeCalls(at(session))
      return {
        ...calls,
        sleep: async (request) => ({ ...(await sleeping.operations.claim(request)), again: false }),
        async pushInTransaction(input) {
          const transaction = await opened.begin?.(at(session))
          transactions[session] = transaction
          return transaction?.push(input.jobs) ?? calls.push(input)
        },
      }
    }
    const commit = async (session: number): Promise<void> => {
      await transactions[session]?.commit()
      await transactions[session]?.close()
      transactions[session] = undefined
    }
    this.calls = { ...callsOf(0), pushInTransaction: (input) => this.store.operations.push(input) }
    this.#sessions = Array.from(
      { length: SESSIONS },
      (_, session) => new WholeSession(callsOf(session), () => commit(session)),
    )
    this.#stop = sleeping.listen(({ kind, queue }) => {
      if (kind === 'work') this.#heard.set(queue, (this.#heard.get(queue) ?? 0) + 1)
    })
  }

  #count(queue: string): number {
    return this.#heard.get(queue) ?? 0
  }

  async told(queue: string): Promise<number> {
    if (this.#opened.mark !== undefined) {
      const before = this.#count(MARK)
      await this.#opened.mark(MARK)
      for (let left = ON_ITS_WAY; this.#count(MARK) === before && left > 0; left--) await sleep(1)
    }
    return this.#count(queue)
  }

  async toldSoon(queue: string, before: number): Promise<boolean> {
    for (let left = ON_ITS_WAY; this.#count(queue) <= before && left > 0; left -= 10) await sleep(10)
    return this.#count(queue) > before
  }

  async probe(world: World): Promise<(string | null)[]> {
    const { jobs } = await this.store.operations.claim({
      queue: world.queue,
      worker: 'probe',
      limit: 40,
      lease: 30_000,
    })
    world.hold(jobs)
    return jobs.map(({ group }) => group)
  }

  async rows(queue: string): Promise<Map<string, number>> {
    const lists = JOB_STATES.map(async (state): Promise<[string, number]> => {
      const { jobs } = await this.store.operations.list({ queue, state, limit: 1000 })
      return [state, jobs.length]
    })
    return new Map(await Promise.all(lists))
  }

  stops(): readonly string[] {
    return []
  }

  async race(world: World, scripts: readonly Script[], path: Path): Promise<boolean> {
    const callers = scripts.map((script, at) => {
      const caller = this.#sessions[at]
      if (caller === undefined) throw new Error('too few sessions')
      caller.begin(world, script)
      return caller
    })
    let followed = true
    while (callers.some(({ over }) => !over)) {
      const able = await this.#able(callers)
      const wanted = path.choose(able)
      if (wanted === undefined) followed = false
      const caller = callers[wanted ?? able[0] ?? 0]
      const fault = await caller?.step()
      if (fault !== undefined) world.faults.push(fault)
      if (caller !== undefined && !caller.underWay && scripts.length > 0)
        world.faults.push(...overLimit(world, await this.#running(world)))
    }
    return followed
  }

  /** While a transaction is open, others may wait for its end; which of them do is not to be seen from outside. */
  async #able(callers: readonly WholeSession[]): Promise<number[]> {
    const holder = callers.find(({ inTransaction }) => inTransaction)
    if (this.#opened.begin === undefined || holder === undefined)
      return callers.flatMap(({ over }, at) => (over ? [] : [at]))
    // There is only one at a time, and so it waits for nobody for long; nobody else may be waited for before it is committed.
    await holder.call
    await Promise.all(callers.map(({ call }) => Promise.race([call, sleep(WAITS_AFTER)])))
    return callers.flatMap((caller, at) => {
      if (caller.over || (caller.underWay && !caller.answered) || caller.beginsTransaction) return []
      return [at]
    })
  }

  /** Not while calls are under way that it would wait for. */
  async #running(world: World): Promise<Map<string, number>> {
    if (this.#sessions.some(({ underWay }) => underWay)) return new Map()
    const running = new Map<string, number>()
    const { jobs } = await this.store.operations.list({ queue: world.queue, state: 'running', limit: 1000 })
    for (const { group } of jobs) {
      running.set(group ?? '', (running.get(group ?? '') ?? 0) + 1)
    }
    return running
  }

  async inside(): Promise<string[]> {
    return []
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#opened.close()
  }
}
