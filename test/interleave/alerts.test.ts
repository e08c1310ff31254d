/**
 * The takeover of alerts: of two processes, the one that looks dies or stalls at each of its calls, before the call or after it. The queue
 * rises once above the rule's value, and falls before the other process takes over, or after. Whatever the order, the rise fires once at
 * most, and whatever has fired resolves, once. If it lasts until the other process looks, it has fired.
 *
 * A call of a process that has stalled reaches the store when it goes on: after the takeover, in the order of the calls or the latest one
 * first, as calls on several connections may.
 */
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Alert, alerts } from '../../src/alerts/index.ts'
import { Millpond } from '../../src/pond/millpond.ts'
import type { OperationName, Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { openStore } from '../../src/stores/open.ts'
import { MAX_PAYLOAD } from '../../src/values/encoding/encoding.ts'
import { newJobs } from '../support/jobs.ts'

const START = 1_800_000_000_000
/** In ms: between two looks. */
const EVERY = 1000
/** In ms, of each turn of the virtual clock. */
const TICK = 1000
/** In ms: longer than the lease of the right to look, and a few looks. */
const TAKEOVER = 25_000
/** In ms: a few looks. */
const LOOKS = 4000

/** The calls by which a process looks, notes, tells and holds the right to look. */
const COUNTED: readonly OperationName[] = ['claim', 'extend', 'push', 'find', 'stats', 'complete', 'release', 'fail']

type When = 'before' | 'after'

/** Its calls reach the store until the n-th one. */
class Gate {
  readonly #waiting: (() => void)[] = []
  #left = Number.POSITIVE_INFINITY
  #when: When = 'before'
  #isShut = false

  on(store: Store): Store {
    return around(store, (name, input, next) => {
      const isLast = COUNTED.includes(name) && --this.#left === 0
      if (!isLast || this.#when === 'before') {
        this.#isShut ||= isLast
        return this.#isShut ? this.#wait().then(() => next(input)) : next(input)
      }
      this.#isShut = true
      const answer = next(input)
      return this.#wait().then(() => answer)
    })
  }

  #wait(): Promise<void> {
    return new Promise((go) => this.#waiting.push(go))
  }

  shutAt(call: number, when: When): void {
    this.#left = call
    this.#when = when
  }

  get isShut(): boolean {
    return this.#isShut
  }

  open(order: Order): void {
    this.#isShut = false
    const waiting = this.#waiting.splice(0)
    for (const go of order === 'latest first' ? waiting.reverse() : waiting) go()
  }
}

type Order = 'in order' | 'latest first'

interface Case {
  when: When
  /** The jobs go before the other process takes over. */
  fallsSoon: boolean
  /** The process goes on after the takeover, and its calls reach the store. Unset: it died. */
  goesOn?: Order
}

class Race {
  readonly #t: TestContext
  readonly #store: Store
  readonly #told: Alert[] = []

  constructor(t: TestContext, store: Store) {
    this.#t = t
    this.#store = store
  }

  /** @returns false: the process has ended before it made so many calls */
  async run(call: number, { when, fallsSoon, goesOn }: Case): Promise<boolean> {
    const { operations } = this.#store
    const gate = new Gate()
    const first = this.#process(gate.on(this.#store))
    await this.#pass(LOOKS)
    const second = this.#process(this.#store)
    await this.#pass(LOOKS)
    const jobs = newJobs(2, { queue: 'mail' })
    const fall = async () => void (await operations.remove({ ids: jobs.map(({ id }) => id) }))

    gate.shutAt(call, when)
    await operations.push({ jobs })
    await this.#pass(LOOKS)
    // The rest of the calls is that of the fall.
    const isLate = !gate.isShut
    if (isLate || fallsSoon) await fall()
    if (isLate) await this.#pass(LOOKS)
    const isReached = gate.isShut
    await this.#pass(TAKEOVER)
    if (goesOn !== undefined) gate.open(goesOn)
    await this.#pass(LOOKS)
    if (!isLate && !fallsSoon) await fall()
    await this.#pass(TAKEOVER)

    const { jobs: told } = await operations.list({ queue: 'millpond/alerts', state: 'done', limit: 10 })
    const turns = this.#told.map(({ state, since }) => `${state} ${since}`)
    const [since] = this.#told.map((alert) => alert.since)
    const expected = [`firing ${since}`, `resolved ${since}`]
    const at = `call ${call}, ${JSON.stringify({ when, fallsSoon, goesOn })}`
    const distinct = [...new Set(turns)]
    if (turns.length > 0 || isLate || !fallsSoon) assert.deepEqual(distinct, expected, at)
    assert.equal(told.length, distinct.length, `${at}: the store has other alerts than were told`)
    // One that was under way is told again.
    assert.ok(turns.length <= distinct.length + 1, `${at}: told ${turns}`)
    if (goesOn !== undefined) await first.close()
    await second.close()
    return isReached
  }

  #process(store: Store): { close(): Promise<void> } {
    const pond = new Millpond(store, MAX_PAYLOAD)
    const rules = [{ name: 'deep', queue: 'mail', when: { depth: 1 }, for: 0 }]
    const watching = alerts(pond, { rules, notify: (alert) => void this.#told.push(alert), every: EVERY })
    return {
      close: async () => {
        const closed = watching.close()
        await this.#pass(EVERY)
        await closed
      },
    }
  }

  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += TICK) {
      await turn()
      this.#t.mock.timers.tick(TICK)
    }
    await turn()
  }
}

const CASES: Record<string, Omit<Case, 'when'>[]> = {
  dies: [{ fallsSoon: true }, { fallsSoon: false }],
  stalls: (['in order', 'latest first'] as const).flatMap((goesOn) => [
    { fallsSoon: true, goesOn },
    { fallsSoon: false, goesOn },
  ]),
}

describe('the takeover of alerts in every order', () => {
  for (const [what, cases] of Object.entries(CASES)) {
    for (const when of ['before', 'after'] as const) {
      test(`the process that looks ${what} ${when} each of its calls`, async (t) => {
        let count = 0
        for (const given of cases) {
          for (let call = 1, isReached = true; isReached; call++, count++) {
            // A process that died has timers.
            t.mock.timers.reset()
            t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: START })
            // So that imported timers are those, too.
            syncBuiltinESMExports()
            const store = await openStore('memory:', { clock: () => Date.now() })
            isReached = await new Race(t, store).run(call, { ...given, when })
          }
        }
        t.diagnostic(`${count} orders`)
      })
    }
  }
})
