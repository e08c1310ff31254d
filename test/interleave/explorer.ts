/** Runs cases until the time is over, and collects what it finds. */

import { type Arena, type Script, STRANGERS } from './arena.ts'
import { type Case, describeScript, some } from './cases.ts'
import { check } from './checks.ts'
import { perform, scheduleOf } from './operations.ts'
import { inAllOrders, type Orders, type Path } from './orders.ts'
import { World } from './world.ts'

export interface Finding {
  fault: string
  count: number
  /** The smallest case that shows it. */
  example: string
  size: number
}

export interface Limits {
  /** Most milliseconds, by `performance.now()`. */
  until: number
  /** Most orders of a case. */
  orders: number
  random: () => number
  /** Each case has a stranger, where the store can have one. */
  strangers?: boolean
}

/** Orders after which an empty store is opened. */
const REOPEN_AFTER = 300

export class Explorer {
  readonly #open: () => Promise<Arena>
  readonly #name: string
  #opened: Arena | undefined
  readonly findings = new Map<string, Finding>()
  cases = 0
  orders = 0
  #queues = 0

  /** @param open a store without anything in it */
  constructor(name: string, open: () => Promise<Arena>) {
    this.#name = name
    this.#open = open
  }

  async #arena(): Promise<Arena> {
    if (this.#queues % REOPEN_AFTER === 0) await this.close()
    this.#opened ??= await this.#open()
    return this.#opened
  }

  async close(): Promise<void> {
    await this.#opened?.close()
    this.#opened = undefined
  }

  async explore(cases: Iterable<Case>, { until, orders, random, strangers = false }: Limits): Promise<void> {
    for (const each of cases) {
      if (performance.now() > until) return
      this.cases++
      const scripts = each.kinds.map((kind): Script => ({ operations: [some(kind, random)] }))
      await this.run(each, strangers ? withStranger(scripts, random) : this.#withStop(scripts, random), {
        most: orders,
        random,
      })
    }
  }

  /** One case, in all of its orders or in as many. */
  async run(
    { config, history }: Pick<Case, 'config' | 'history'>,
    scripts: readonly Script[],
    orders: Orders,
  ): Promise<void> {
    await inAllOrders((path) => this.#once({ config, history }, scripts, path), orders)
  }

  /** Most cases have a stop: inside the call of one of the sessions, or where a helper holds a row. */
  #withStop(scripts: readonly Script[], random: () => number): readonly Script[] {
    const arena = this.#opened
    const at = Math.floor(random() * (scripts.length + 2))
    if (at === scripts.length && arena?.holdsRows) {
      return random() < 0.5 ? [...scripts, { operations: [], row: true }] : withStranger(scripts, random)
    }
    return scripts.map((script, index) => {
      const statements = arena?.stops(script.operations[0]?.kind ?? '') ?? []
      const statement = statements[Math.floor(random() * statements.length)]
      if (index !== at || statement === undefined) return script
      return { ...script, stop: { statement, when: random() < 0.5 ? 'before' : 'after' } }
    })
  }

  async #once(
    { config, history }: Pick<Case, 'config' | 'history'>,
    scripts: readonly Script[],
    path: Path,
  ): Promise<boolean> {
    const arena = await this.#arena()
    const queue = `q${process.pid}.${++this.#queues}`
    const world = new World(queue, config, arena.store.capabilities.graphs, () => arena.told(queue))
    await arena.store.operations.configure({
      queue,
      keepDone: config.keepDone ?? 0,
      backoff: { base: 0, factor: 1, max: 0, jitter: 0 },
      ...config.limits,
    })
    await arena.store.operations.declare({ schedules: [scheduleOf(queue, world.version)] })
    world.scheduledAt = world.now
    for (const operation of history.operations) {
      const effect = await perform(arena.calls, operation, world)
      effect()
    }
    let faults: string[]
    let followed = false
    try {
      followed = await arena.race(world, scripts, path)
      faults = await check(arena, world)
    } catch (error) {
      faults = [`the explorer failed: ${error instanceof Error ? error.stack : error}`]
    }
    this.orders++
    const example = `${config.name} | ${history.name} | ${scripts.map(describeScript).join(' ∥ ')} | ${path.order}`
    for (const fault of faults) this.#found(fault, example)
    return followed
  }

  #found(fault: string, example: string): void {
    const size = example.length
    const known = this.findings.get(fault)
    if (known === undefined) this.findings.set(fault, { fault, count: 1, example, size })
    else {
      known.count++
      if (size < known.size) Object.assign(known, { example, size })
    }
  }

  /** Throws what was found since the last time. */
  assertFree(): void {
    if (this.findings.size === 0) return
    const report = this.report()
    this.findings.clear()
    throw new Error(report)
  }

  report(): string {
    const lines = [...this.findings.values()].map(({ fault, count, example }) => `  ${fault} (${count}): ${example}`)
    return [
      `${this.#name}: ${this.cases} cases, ${this.orders} orders, ${this.findings.size} kinds of faults`,
      ...lines,
    ].join('\n')
  }
}

const withStranger = (scripts: readonly Script[], random: () => number): readonly Script[] => {
  const stranger = STRANGERS[Math.floor(random() * STRANGERS.length)] ?? 'key'
  return [...scripts, { operations: [], stranger }]
}
