/** The processes of a chaos, and what they have noted. */
import assert from 'node:assert/strict'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import type { ScheduleRecord } from '../../src/values/schedules/records.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { TICKS, type Unit, unitsOf } from './chaos-plan.ts'
import { type Child, seeded, start } from './harness.ts'
import { Journal } from './journal.ts'
import { line } from './ledger.ts'
import type { ChaoticConfig } from './roles/chaotic.ts'

const PROCESSES = 4
export const SCHEDULES: readonly string[] = ['tick-0', 'tick-1', 'tick-2', 'tick-3']

export interface ChaosOptions {
  url: string
  seed: number
  /** About how many jobs are pushed. */
  jobs: number
  /** In ms. */
  lease: number
  /** How often something is killed. */
  rounds: number
}

/** What became of one try to push a unit. `answer`: the ids that it resolved to; undefined: it was refused, or nobody knows. */
export interface Try {
  unit: number
  attempt: string
  answer?: readonly string[]
  code?: string
}

export class ChaosCrew {
  readonly options: ChaosOptions
  readonly units: readonly Unit[]
  /** Where the starts and ends of all jobs are. */
  readonly ledger: string
  readonly store: Store
  kills = 0
  /** The schedules after their last firing. */
  schedules: ScheduleRecord[] = []
  readonly all: Child[] = []
  readonly #tries: string
  readonly #bound: number
  readonly #random: () => number
  readonly #left: number[][]
  readonly #crew: Child[] = []
  readonly #add: (nth: number) => Child

  static async start(t: TestContext, options: ChaosOptions): Promise<ChaosCrew> {
    const store = await openStore(options.url, {})
    after(t, () => store.close())
    const crew = new ChaosCrew(t, store, options)
    await Promise.all(crew.all.map((child) => child.hear('busy')))
    return crew
  }

  private constructor(t: TestContext, store: Store, options: ChaosOptions) {
    const { url, seed, jobs, lease } = options
    const folder = scratch(t)
    this.options = options
    this.store = store
    this.units = unitsOf(seed, jobs)
    this.ledger = join(folder, 'ledger')
    this.#tries = join(folder, 'tries')
    for (const path of [this.ledger, this.#tries]) writeFileSync(path, '')
    this.#bound = 60_000 + jobs * 20
    this.#random = seeded(seed)
    this.#left = Array.from({ length: PROCESSES }, (_, nth) =>
      [...this.units.keys()].filter((unit) => unit % PROCESSES === nth),
    )
    const common = { url, seed, schedules: SCHEDULES, lease, ledger: this.ledger, tries: this.#tries }
    this.#add = (nth) => {
      const config: ChaoticConfig = { ...common, units: this.#left[nth] ?? [] }
      const child = start(t, 'chaotic', config)
      this.all.push(child)
      return child
    }
    for (let nth = 0; nth < PROCESSES; nth++) this.#crew[nth] = this.#add(nth)
  }

  #assertAlive(): void {
    for (const child of this.#crew) assert.ok(child.alive, child.words)
  }

  /** Waits until so much is done that this round's turn has come. */
  async underLoad(round: number): Promise<void> {
    const { jobs, rounds } = this.options
    const goal = Math.floor((jobs * (round - this.#random())) / (rounds + 1))
    const journal = new Journal(this.ledger)
    await until(
      () => {
        this.#assertAlive()
        return journal.count('end') >= goal
      },
      `${goal} jobs have ended`,
      this.#bound,
    )
  }

  /** One process is killed, and another one takes over what it had to push. */
  async killOne(): Promise<void> {
    const nth = Math.floor(this.#random() * this.#crew.length)
    const victim = this.#crew[nth]
    assert.ok(victim)
    victim.kill('SIGKILL')
    await victim.exited
    appendFileSync(this.ledger, line('killed', victim.pid))
    this.kills++
    const pushed = new Set(victim.said('pushed').map(({ unit }) => unit))
    this.#left[nth] = this.#left[nth]?.filter((unit) => !pushed.has(unit)) ?? []
    this.#crew[nth] = this.#add(nth)
  }

  /** All is pushed and has ended; the schedules stop, and the processes close. */
  async settle(): Promise<void> {
    const { operations } = this.store
    const alive = (condition: () => boolean | Promise<boolean>, what: string) =>
      until(
        async () => {
          this.#assertAlive()
          return await condition()
        },
        `${what}, seed ${this.options.seed}`,
        this.#bound,
      )
    await alive(() => this.#crew.every((child) => child.said('all-pushed').length > 0), 'all is pushed')
    for (const name of SCHEDULES) assert.equal(await operations.pauseSchedule({ name, paused: true }), true)
    this.schedules = await operations.schedules({ limit: 100 })
    let shown = ''
    await alive(async () => {
      const stats = await operations.stats({})
      shown = stats.map(({ queue, counts }) => `${queue} ${JSON.stringify(counts)}`).join(', ')
      return stats.every(({ counts: { blocked, scheduled, waiting, running } }) => {
        return blocked + scheduled + waiting + running === 0
      })
    }, 'all has ended').catch((error: unknown) => {
      throw new Error(`stuck: ${shown}`, { cause: error })
    })
    for (const child of this.#crew) child.send({ kind: 'close' })
    await Promise.all(this.all.map((child) => child.exited))
  }

  /** What the processes have noted of their pushes. A try without an answer was cut short. */
  tries(): Try[] {
    const tries = new Map<string, Try>()
    for (const words of new Journal(this.#tries).lines) {
      const [unit = '', attempt = '', what, ...rest] = words.split(' ')
      const known = tries.get(`${unit} ${attempt}`)
      const told = what === 'pushed' ? { answer: rest } : what === 'refused' ? { code: rest[0] ?? '' } : {}
      tries.set(`${unit} ${attempt}`, { ...(known ?? { unit: Number(unit), attempt }), ...told })
    }
    return [...tries.values()]
  }

  /** How many jobs the schedules have pushed. */
  async ticks(): Promise<number> {
    return (await this.store.operations.stats({ queue: TICKS }))[0]?.totals.pushed ?? 0
  }
}
