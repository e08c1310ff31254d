/**
 * A move in every order: its calls against those of workers at both ends and of a second move, with a kill after each call. After every call,
 * each job is known at the source or at the target. In the end each has run once. Only where a move is killed and nobody goes on with it may
 * a job that it had taken run at both ends, as after a lost lease.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Mover } from '../../src/move/mover.ts'
import type { Source } from '../../src/move/source.ts'
import { ClaimSource } from '../../src/move/sources/claims.ts'
import { StoreSource } from '../../src/move/sources/store.ts'
import { Target } from '../../src/move/target.ts'
import type { OperationName, Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { openStore } from '../../src/stores/open.ts'
import { isMillpondError, MillpondError } from '../../src/values/errors/errors.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { seeded } from '../faults/harness.ts'
import { depth } from '../support/depth.ts'
import { newId, newJob } from '../support/jobs.ts'
import { inAllOrders, type Path } from './orders.ts'

const SEED = Number(process.env.MILLPOND_INTERLEAVE_SEED ?? randomInt(2 ** 31))
/** Of each case; `MILLPOND_TEST_DEEP=Infinity` for all. */
const ORDERS = depth(10, 100)
/** In ms: after that, what a killed move had taken comes back. */
const LATER = 61_000
/** In ms. Workers are slow, but not lost. */
const LEASE = 3_600_000
/** In ms: longer than any race, whose clock goes on by LONG_WAIT at each turn of the event loop. */
const KEEP = 3650 * 24 * 3_600_000
/** In ms: the longest wait of a move for jobs that run. */
const WAIT = 250
/** Turns of the event loop after which a session waits for another one. */
const PASSES = 20
/** In ms: that each turn takes when the race is over. */
const LONG_WAIT = 20_000

/** The calls that change something, or decide what is changed. */
const RACED: readonly OperationName[] = ['list', 'update', 'remove', 'claim', 'complete', 'restore']
/** Of a move of one batch: it looks, takes, stores and removes. */
const CALLS = 4
/** A worker claims a job and completes it. */
const CALLS_OF_A_WORKER = 2

/** Makes its calls when it is told to go on. After `calls` of them it is killed, or goes on by itself once the race is over. */
class Session {
  readonly #waiting: (() => void)[] = []
  #left: number
  readonly #isKilled: boolean
  #ended: Promise<unknown> = Promise.resolve()
  #isOver = false

  constructor(calls: number, isKilled = false) {
    this.#left = calls
    this.#isKilled = isKilled
  }

  on(store: Store): Store {
    return around(store, (name, input, next) => {
      const isLook = name === 'list' && 'state' in input && input.state !== 'waiting'
      return this.#turn(RACED.includes(name) && !isLook).then(() => next(input))
    })
  }

  async #turn(isRaced: boolean): Promise<void> {
    if (isRaced) await new Promise<void>((go) => this.#waiting.push(go))
  }

  start(run: Promise<unknown>): void {
    this.#ended = run.finally(() => {
      this.#isOver = true
    })
    this.#ended.catch(() => {})
  }

  get isAble(): boolean {
    return this.#left > 0 && this.#waiting.length > 0
  }

  async go(pass: () => Promise<void>): Promise<void> {
    this.#left--
    this.#waiting.shift()?.()
    await this.arrive(pass)
  }

  /** Resolves when its next call waits, or it waits for another session. */
  async arrive(pass: () => Promise<void>): Promise<void> {
    for (let passes = 0; passes < PASSES && !this.#isOver && this.#waiting.length === 0; passes++) await pass()
  }

  async finish(pass: () => Promise<void>): Promise<void> {
    while (!this.#isKilled && !this.#isOver) {
      this.#waiting.shift()?.()
      await pass()
    }
    if (!this.#isKilled) await this.#ended
  }
}

interface Case {
  from: (store: Store) => Source
  /** Two that wait unless given. */
  jobs?: () => readonly Partial<NewJob>[]
  /** A job of the target, which has its key. */
  there?: Partial<NewJob>
  /** The move whose target takes nothing: it ends with an error. */
  fails?: number
  /** Of each move that are raced, CALLS unless given. */
  calls?: number
  /** How all orders begin, as a fault was found there once. */
  begin?: readonly number[]
  /** Of each move, after which call it is killed; null: it is not. */
  moves: readonly (number | null)[]
  /** A worker of the source, and one of the target. */
  workers: boolean
  /** Nobody goes on with a move that was killed until its jobs come back. */
  late: boolean
}

class Race {
  readonly source: Store
  readonly target: Store
  readonly runs = new Map<string, number>()
  readonly #case: Case
  readonly #pass: () => Promise<void>
  readonly #clock: { now: number }

  private constructor(ends: [Store, Store], given: Case, clock: { now: number }, pass: () => Promise<void>) {
    ;[this.source, this.target] = ends
    this.#case = given
    this.#clock = clock
    this.#pass = pass
  }

  /** @returns false: the path could not be followed */
  static async run(given: Case, path: Path, pass: () => Promise<void>): Promise<boolean> {
    const clock = { now: Date.now() }
    const open = () => openStore('memory:', { clock: () => clock.now })
    const race = new Race([await open(), await open()], given, clock, pass)
    const jobs = (given.jobs?.() ?? [{}, {}]).map((job) => newJob(job))
    const there = given.there === undefined ? [] : [newJob(given.there)]
    for (const { id } of [...jobs, ...there]) race.runs.set(id, 0)
    // A job that ended is known by its id for as long as it is kept.
    for (const { operations } of [race.source, race.target]) await operations.configure({ queue: 'q', keepDone: KEEP })
    await race.source.operations.push({ jobs })
    if (there.length > 0) await race.target.operations.push({ jobs: there })
    const isFollowed = await race.#race(path)
    if (isFollowed) await race.#end(path.order)
    await Promise.all([race.source.close(), race.target.close()])
    return isFollowed
  }

  async #race(path: Path): Promise<boolean> {
    const { moves, workers, calls = CALLS } = this.#case
    const sessions: Session[] = []
    const begin = async (calls: number, isKilled: boolean, run: (session: Session) => Promise<unknown>) => {
      const session = new Session(calls, isKilled)
      sessions.push(session)
      session.start(run(session))
      await session.arrive(this.#pass)
    }
    for (const [index, killed] of moves.entries()) {
      const isFailing = index === this.#case.fails
      await begin(killed ?? calls, killed !== null, (session) =>
        // Unless the other one has moved all.
        isFailing ? this.#move(session, full).catch(assertFull) : this.#move(session),
      )
    }
    if (workers) {
      await begin(CALLS_OF_A_WORKER, false, (session) => this.#work(session.on(this.source)))
      await begin(CALLS_OF_A_WORKER, false, (session) => this.#work(session.on(this.target)))
    }
    for (;;) {
      const able = sessions.flatMap((session, index) => (session.isAble ? index : []))
      if (able.length === 0) break
      const chosen = path.choose(able)
      if (chosen === undefined) return false
      await sessions[chosen]?.go(this.#pass)
      await this.#assertKnown(path.order)
    }
    // One may wait for what another one has taken: time passes.
    await Promise.all(sessions.map((session) => session.finish(this.#passLonger)))
    await this.#assertKnown(path.order)
    return true
  }

  async #end(order: string): Promise<void> {
    const { moves, late, from } = this.#case
    const isKilled = moves.some((killed) => killed !== null)
    // What a move has claimed comes back when the lease ends. What it has put off is taken up by the next move.
    if (late || from(this.source) instanceof ClaimSource) await this.#comeBack(this.source)
    if (late) await this.#workOff(this.source)
    const last = new Session(0)
    last.start(this.#move(last))
    await last.finish(this.#passLonger)
    await this.#comeBack(this.target)
    await this.#workOff(this.target)
    const runs = [...this.runs.values()]
    const most = isKilled && late ? 2 : 1
    assert.ok(
      runs.every((count) => count >= 1 && count <= most),
      `${order}: the jobs have run ${runs} times`,
    )
    for (const { counts } of await this.source.operations.stats({ queue: 'q' })) {
      assert.deepEqual(counts, { ...counts, scheduled: 0, waiting: 0, running: 0 }, order)
    }
  }

  readonly #passLonger = async (): Promise<void> => {
    this.#clock.now += LONG_WAIT
    await this.#pass()
  }

  #move(session: Session, to = (store: Store) => store): Promise<unknown> {
    const source = this.#case.from(session.on(this.source))
    const target = new Target(session.on(to(this.target)))
    return new Mover(source, target, { queues: ['q'], settings: false }, async () => {}).run()
  }

  async #work({ operations }: Store): Promise<number> {
    const { jobs } = await operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: LEASE })
    const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
    const ended = await operations.complete({ queue: 'q', items })
    const done = items.filter((_, index) => ended[index] === 'ok')
    for (const { id } of done) this.runs.set(id, (this.runs.get(id) ?? 0) + 1)
    return jobs.length
  }

  async #workOff(store: Store): Promise<void> {
    while ((await this.#work(store)) > 0) {}
  }

  async #comeBack({ operations }: Store): Promise<void> {
    this.#clock.now += LATER
    await operations.sweep({ limit: 100 })
  }

  async #assertKnown(order: string): Promise<void> {
    const ids = [...this.runs.keys()]
    const here = await this.source.operations.find({ ids })
    const there = await this.target.operations.find({ ids })
    assert.ok(
      ids.every((_, index) => (here[index] ?? there[index] ?? null) !== null),
      `${order}: a job is in neither place`,
    )
  }
}

/** A target that has no room left. */
const full = (store: Store): Store =>
  around(store, (name, input, next) =>
    name === 'restore' ? Promise.reject(new MillpondError('StoreFull', 'no room')) : next(input),
  )

const assertFull = (error: unknown) => assert.ok(isMillpondError(error, 'StoreFull'), String(error))

const SOURCES: Record<string, (store: Store) => Source> = {
  'jobs that are put off': (store) => new StoreSource(store),
  'jobs that are claimed': (store) => new ClaimSource(store, true),
}

const KILLS = [1, 2, 3, 4]
/** Two batches: a move goes over the jobs that wait for others first. */
const family = () => {
  const parent = newId()
  return [{ id: parent }, { after: [parent] }]
}
const KEYED = { key: 'k' }
/** Both moves have taken a job that waits, the other one has stored it, and the target has failed the first one. */
const TAKEN_BY_BOTH = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
/** Both moves have taken the job, the target has refused it to the first, and has stored it for the other. */
const REFUSED_ONCE = [1, 0, 1, 1, 3, 3, 0, 0]

async function inOrders(t: TestContext, cases: readonly Case[]): Promise<void> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  // So that imported timers are those, too.
  syncBuiltinESMExports()
  const pass = async () => {
    await turn()
    t.mock.timers.tick(WAIT)
  }
  let count = 0
  for (const each of cases) {
    count += await inAllOrders((path) => Race.run(each, path, pass), {
      most: ORDERS,
      random: seeded(SEED),
      begin: each.begin,
    })
  }
  t.diagnostic(`${count} orders, seed ${SEED}`)
}

for (const [about, from] of Object.entries(SOURCES)) {
  describe(`a move in every order: ${about}`, () => {
    test('beside a worker at each end', (t) => inOrders(t, [{ from, moves: [null], workers: true, late: false }]))

    test('killed after each call, and the next move goes on at once', (t) =>
      inOrders(
        t,
        KILLS.map((killed) => ({ from, moves: [killed], workers: true, late: false })),
      ))

    test('killed after each call, and the workers of the source go on', (t) =>
      inOrders(
        t,
        KILLS.map((killed) => ({ from, moves: [killed], workers: true, late: true })),
      ))

    test('two moves at once, one of them killed after each call, or none', (t) =>
      inOrders(
        t,
        [null, ...KILLS].map((killed) => ({ from, moves: [null, killed], workers: true, late: false })),
      ))

    test('two moves at once, one of which ends with an error', (t) =>
      inOrders(
        t,
        [undefined, TAKEN_BY_BOTH].map((begin) => {
          return {
            from,
            moves: [null, null],
            fails: 1,
            calls: 7,
            jobs: family,
            workers: true,
            late: false,
            ...(begin && { begin }),
          }
        }),
      ))

    test('two moves at once, of a job whose key comes free at the target', (t) =>
      inOrders(
        t,
        [undefined, REFUSED_ONCE].map((begin) => {
          return {
            from,
            moves: [null, null],
            jobs: () => [KEYED],
            there: KEYED,
            workers: true,
            late: false,
            ...(begin && { begin }),
          }
        }),
      ))
  })
}
