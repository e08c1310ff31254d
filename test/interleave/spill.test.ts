/**
 * Spill-over, in many orders: two processes spill to one durable store and take back from it. Each call of the durable store is a step, and
 * the steps of the two meet in all orders, or in a sample of them. Whatever the order, no job is lost and none runs twice, and a process
 * that is killed loses no more than what it had in memory.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { openMemory } from '../../src/stores/memory/index.ts'
import { spillOver } from '../../src/stores/spill/index.ts'
import { seeded } from '../faults/harness.ts'
import { newJob } from '../support/jobs.ts'
import { openDurable } from '../support/spilling.ts'
import { inAllOrders, type Path } from './orders.ts'
import { clock } from './world.ts'

const QUEUE = 'emails'
const MOST_ORDERS = 150
/** A take claims for this long, in ms: what a killed process held there waits again after that. */
const LEASE = 60_000

/** Holds the calls of one process to the durable store, each until it is let go. */
class Gate {
  readonly #held: (() => Promise<void>)[] = []
  isOpen = true

  get isWaiting(): boolean {
    return this.#held.length > 0
  }

  of(durable: Store): Store {
    return around(durable, (_, input, next) => {
      if (this.isOpen) return next(input)
      return new Promise((resolve, reject) => this.#held.push(() => next(input).then(resolve, reject)))
    })
  }

  /** From here on nothing is held. */
  async open(): Promise<void> {
    this.isOpen = true
    while (this.isWaiting) await this.step()
  }

  async step(): Promise<void> {
    await this.#held.shift()?.()
  }
}

interface Process {
  store: Store
  /** What is in its memory, without the durable store. */
  memory: Store
  gate: Gate
  pushed: string[]
  ran: string[]
}

type Program = (process: Process) => Promise<void>

const push =
  (count: number): Program =>
  async ({ store, pushed }) => {
    const jobs = Array.from({ length: count }, () => newJob({ queue: QUEUE, spill: true }))
    const outcomes = await store.operations.push({ jobs })
    for (const { status, id } of outcomes) {
      assert.equal(status, 'pushed')
      pushed.push(id)
    }
  }

const work =
  (limit: number): Program =>
  async ({ store, ran }) => {
    const { jobs } = await store.operations.claim({ queue: QUEUE, worker: 'w', limit, lease: null })
    const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
    const outcomes = await store.operations.complete({ queue: QUEUE, items })
    ran.push(...items.filter((_, at) => outcomes[at] === 'ok').map(({ id }) => id))
  }

const sweep: Program = async ({ store }) => void (await store.operations.sweep({ limit: 100 }))
const close: Program = ({ store }) => store.close()

const inTurn =
  (...programs: readonly Program[]): Program =>
  async (process) => {
    for (const program of programs) await program(process)
  }

const RACES: Record<string, readonly [Program, Program]> = {
  'both push beyond their room, and work': [inTurn(push(4), work(4)), inTurn(push(4), work(4))],
  'one closes while the other works': [inTurn(push(4), close), inTurn(sweep, work(3), work(3))],
  'both close': [inTurn(push(3), work(1), close), inTurn(push(3), work(1), close)],
  'both take back at once': [inTurn(sweep, work(2), work(2)), inTurn(sweep, work(2), work(2))],
}

async function started(durable: Store): Promise<Process> {
  const gate = new Gate()
  // Closing one process leaves the durable store to the other.
  const own = { ...gate.of(durable), close: async () => {} }
  const { store: memory, state } = openMemory('memory:', { clock: () => clock.now })
  await memory.operations.configure({ queue: QUEUE, capacity: 2 })
  return { store: await spillOver(memory, state, own), memory, gate, pushed: [], ran: [] }
}

/** @param killAt the first process makes so many steps and no more */
async function race(programs: readonly [Program, Program], path: Path, killAt = Number.POSITIVE_INFINITY) {
  const durable = openDurable({ clock: () => clock.now })
  const before = await started(durable)
  await inTurn(push(5), close)(before)
  const processes = [await started(durable), await started(durable)]
  const ends = processes.map((process, at) => {
    process.gate.isOpen = false
    let isOver = false
    const end = programs[at]?.(process).finally(() => {
      isOver = true
    })
    return { end, isOver: () => isOver }
  })
  let steps = 0
  const isKilled = () => steps >= killAt
  for (;;) {
    // What a process does between two calls takes no time of its own.
    for (let turn = 0; turn < 5; turn++) await tick()
    const able = processes.flatMap(({ gate }, at) => (gate.isWaiting && !(at === 0 && isKilled()) ? [at] : []))
    if (able.length === 0) break
    const chosen = path.choose(able)
    if (chosen === undefined) return false
    if (chosen === 0) steps++
    await processes[chosen]?.gate.step()
  }
  const order = `order ${path.order}`
  const isDead = (at: number) => at === 0 && isKilled() && ends[0]?.isOver() === false
  for (const [at, { end, isOver }] of ends.entries()) {
    if (isDead(at)) void end?.catch(() => {})
    else {
      assert.ok(isOver(), `${order}: process ${at} waits for nothing`)
      await end
    }
  }
  const alive = processes.filter((_, at) => !isDead(at))
  for (const { gate, store } of alive) {
    await gate.open()
    await store.close()
  }
  const killed = isDead(0) ? processes[0] : undefined
  const ran = processes.flatMap((process) => process.ran)
  assert.equal(new Set(ran).size, ran.length, `${order}: a job ran twice`)
  if (killed !== undefined) clock.now += LEASE + 1
  await durable.operations.sweep({ limit: 1000 })
  const left = await liveIn(durable)
  for (const id of ran) assert.ok(!left.includes(id), `${order}: a job that ran is still there`)
  const known = new Set([...ran, ...left])
  const lost = [before, ...processes].flatMap(({ pushed }) => pushed).filter((id) => !known.has(id))
  const inMemory = killed === undefined ? [] : await liveIn(killed.memory)
  const unexplained = lost.filter((id) => !inMemory.includes(id))
  assert.deepEqual(unexplained, [], `${order}: lost, and not with a memory`)
  return true
}

async function liveIn({ operations }: Store): Promise<string[]> {
  const ids: string[] = []
  for (const { queue } of await operations.stats({})) {
    for (const state of ['waiting', 'scheduled', 'running'] as const) {
      const { jobs } = await operations.list({ queue, state, limit: 1000 })
      ids.push(...jobs.map(({ id }) => id))
    }
  }
  return ids
}

describe('spill-over in many orders', () => {
  for (const [about, programs] of Object.entries(RACES)) {
    test(about, async () => {
      const count = await inAllOrders((path) => race(programs, path), { most: MOST_ORDERS, random: seeded(1) })
      assert.ok(count > 10, `only ${count} orders`)
    })
    test(`${about}, and one is killed after each of its steps`, async () => {
      for (let killAt = 0; killAt < 12; killAt++) {
        await inAllOrders((path) => race(programs, path, killAt), { most: 12, random: seeded(killAt) })
      }
    })
  }
})
