/** PostgreSQL: sessions step by step, on plain connections. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../../src/store.ts'
import { open } from '../../../src/stores/postgres/index.ts'
import { dropSchema, newSchema } from '../../stores/postgres-fixture.ts'
import type { Arena, Script } from '../arena.ts'
import { overLimit } from '../checks.ts'
import { type Calls, storeCalls } from '../operations.ts'
import type { Path } from '../orders.ts'
import { clock, type World } from '../world.ts'
import { faultsInside, rowsByState, runningByGroup } from './internals.ts'
import { RowHolder } from './row-holder.ts'
import { type Connected, connect, Session } from './session.ts'
import { sqlCalls } from './sql-calls.ts'
import { Gate, installStops } from './stops.ts'
import { Stranger } from './stranger.ts'

const SESSIONS = 3
/** Ms for which a session may wait while no other can go on: `extend` gives up waiting by itself. */
const PATIENCE = 5000
/** Ms for which a call that must go past a stranger may wait for it: it tries. */
const HURRY = 1000

/** By kind of operation, the statements that it was seen to make, such as `update groups`. */
const seen = new Map<string, Set<string>>()

export class PostgresArena implements Arena {
  readonly #schema: string
  readonly #observer: Connected
  readonly #listening: Connected
  readonly #gate: Connected
  readonly #holding: Connected
  readonly #sessions: Session[]
  readonly #heard = new Map<string, number>()
  readonly holdsRows = true
  readonly #holder: RowHolder
  readonly #stranger: Stranger
  readonly forgets = Number.POSITIVE_INFINITY
  readonly store: Store
  readonly calls: Calls

  private constructor(schema: string, store: Store, connected: Connected[]) {
    const [observer, listening, gate, holding, ...sessions] = connected
    if (observer === undefined || listening === undefined || gate === undefined || holding === undefined)
      throw new Error('too few connections')
    this.#schema = schema
    this.#observer = observer
    this.#listening = listening
    this.#gate = gate
    const shared = { observer: observer.client, gate: new Gate(gate.client, gate.pid), seen }
    this.#sessions = sessions.map((connection, number) => new Session(number, connection, schema, shared))
    this.#holder = new RowHolder(holding.client, schema)
    this.#stranger = new Stranger(holding, schema)
    this.#holding = holding
    this.store = store
    this.calls = { ...storeCalls(store), sleep: sqlCalls(observer.client, schema, 'sleeper').sleep }
  }

  static async open(url: string): Promise<PostgresArena> {
    const schema = newSchema()
    const store = await open(url, { schema, clock: () => clock.now })
    const connected = await Promise.all(Array.from({ length: 4 + SESSIONS }, () => connect(url)))
    const arena = new PostgresArena(schema, store, connected)
    await installStops(arena.#observer.client, schema)
    await arena.#listen()
    return arena
  }

  async #listen(): Promise<void> {
    const { client } = this.#listening
    client.on('notification', ({ payload = '' }) => {
      if (!payload.startsWith('work:')) return
      const queue = payload.slice('work:'.length)
      this.#heard.set(queue, (this.#heard.get(queue) ?? 0) + 1)
    })
    await client.query(`listen ${this.#schema}`)
  }

  /** What was committed before has been heard when the server answers. */
  async told(queue: string): Promise<number> {
    await this.#listening.client.query('select 1')
    return this.#heard.get(queue) ?? 0
  }

  async toldSoon(queue: string, before: number): Promise<boolean> {
    return (await this.told(queue)) > before
  }

  async probe(world: World): Promise<(string | null)[]> {
    const { client } = this.#observer
    await client.query('begin')
    try {
      const calls = sqlCalls(client, this.#schema, 'observer')
      const { jobs } = await calls.claim({ queue: world.queue, worker: 'probe', limit: 40, lease: 30_000 })
      return jobs.map(({ group }) => group)
    } finally {
      await client.query('rollback')
    }
  }

  rows(queue: string): Promise<Map<string, number>> {
    return rowsByState(this.#observer.client, this.#schema, queue)
  }

  stops(kind: string): readonly string[] {
    return [...(seen.get(kind) ?? [])]
  }

  async race(world: World, scripts: readonly Script[], path: Path): Promise<boolean> {
    const sessions: (Session | RowHolder | Stranger)[] = []
    const bound = () => this.store.operations.configure({ queue: world.queue, capacity: 1000 })
    for (const [at, script] of scripts.entries()) {
      if (script.stranger !== undefined) {
        await this.#stranger.begin(world, script.stranger, bound)
        sessions.push(this.#stranger)
        continue
      }
      const session = script.row === true ? this.#holder : this.#sessions[at]
      if (session === undefined) throw new Error('too few sessions')
      await session.begin(world, script)
      sessions.push(session)
    }
    let until = performance.now() + PATIENCE
    for (;;) {
      for (const session of sessions) await session.settle()
      if (this.#stranger.state === 'ready') world.faults.push(...(await this.#waitingForStranger(sessions)))
      if (sessions.every(({ state }) => state === 'over')) return true
      const able = sessions.flatMap(({ state }, at) => (state === 'waiting' || state === 'over' ? [] : [at]))
      const chosen = able.length === 0 ? undefined : path.choose(able)
      const session = chosen === undefined ? undefined : sessions[chosen]
      if (session === undefined) {
        if (performance.now() > until) return this.#giveUp(world, sessions, able)
        await sleep(5)
        continue
      }
      until = performance.now() + PATIENCE
      const wasCommit = session.state === 'answered' && session.at !== 'push'
      const fault = await session.step()
      if (fault !== undefined) world.faults.push(fault)
      if (wasCommit) world.faults.push(...overLimit(world, await this.#running(world)))
    }
  }

  #running(world: World): Promise<Map<string, number>> {
    return runningByGroup(this.#observer.client, this.#schema, world.queue)
  }

  /** Calls that should go past the stranger, and wait for it, or for one that does. */
  async #waitingForStranger(sessions: readonly (Session | RowHolder | Stranger)[]): Promise<string[]> {
    const calls = sessions.filter((session) => session instanceof Session)
    // Two that wait for each other are a dead lock, which the server ends.
    const isHeld = (session: Session, others = calls): boolean => {
      const rest = others.filter((other) => other !== session)
      const isHolder = (pid: number) =>
        pid === this.#stranger.pid || rest.some((other) => other.pid === pid && isHeld(other, rest))
      return session.state === 'waiting' && session.waitsFor.some(isHolder)
    }
    const faults: string[] = []
    for (const session of calls) {
      const { at } = session
      if (at === 'nothing' || !this.#stranger.mustPass(at)) continue
      for (const until = performance.now() + HURRY; isHeld(session); await session.settle()) {
        if (performance.now() < until) continue
        faults.push(`${at} waits for a stranger`)
        break
      }
    }
    return faults
  }

  /** Nobody can go on, or not the one that the path wants. The rest of the race is run in any order. */
  async #giveUp(
    world: World,
    sessions: readonly (Session | RowHolder | Stranger)[],
    able: readonly number[],
  ): Promise<boolean> {
    if (able.length === 0)
      throw new Error(`sessions wait for each other: ${sessions.map(({ at, state }) => `${at} ${state}`).join(', ')}`)
    for (let left = 100; left > 0 && sessions.some(({ state }) => state !== 'over'); left--) {
      for (const session of sessions) {
        await session.settle()
        const fault = await session.step()
        if (fault !== undefined) world.faults.push(fault)
      }
    }
    return false
  }

  inside(world: World, idle: boolean): Promise<string[]> {
    return faultsInside(this.#observer.client, this.#schema, world.queue, idle)
  }

  async close(): Promise<void> {
    await this.store.close()
    const all: (Connected | Session)[] = [this.#observer, this.#listening, this.#gate, this.#holding]
    for (const each of all) if ('client' in each) await each.client.end()
    for (const session of this.#sessions) await session.end()
    await dropSchema(this.#schema)
  }
}
