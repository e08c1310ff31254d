/**
 * Producers and workers on one file are killed (SIGKILL) at random moments under load, every sixth time all of them at once.
 * MILLPOND_FAULT_KILLS sets the kills per mode, MILLPOND_FAULT_SEED the moments and the victims.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Child, countsOf, faultsOf, liveIn, look, seeded, start } from './harness.ts'
import type { ProducerConfig } from './roles/producer.ts'
import type { WorkerConfig } from './roles/worker.ts'

const KILLS = Number(process.env.MILLPOND_FAULT_KILLS ?? 12)
const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const PRODUCERS = 2
const WORKERS = 3
const QUEUE = 'jobs'
/** The capacity keeps the producers from running away from the workers, so that all of them stay under load. */
const OPTIONS = { lease: '1s', capacity: 500, whenFull: 'wait', retry: { attempts: 1000 } } as const

interface Effect {
  id: string
  fence: string
}

/** A folder with one file, and the processes on it. */
class Scene {
  readonly path: string
  readonly #t: TestContext
  readonly #transaction: boolean
  readonly #folder: string
  readonly #random: () => number
  #producers: Child[] = []
  #workers: Child[] = []
  readonly #all: Child[] = []
  kills = 0

  constructor(t: TestContext, transaction: boolean, random: () => number) {
    this.#t = t
    this.#transaction = transaction
    this.#random = random
    this.#folder = scratch(t)
    this.path = join(this.#folder, 'app.db')
    const db = new DatabaseSync(this.path)
    // Nothing here is unique, so that an effect applied twice would show.
    db.exec('create table effects (id text, attempt integer, fence integer)')
    db.close()
  }

  startProducer(): void {
    const log = join(this.#folder, `acknowledged-${this.#all.length}`)
    const config: ProducerConfig = { url: `sqlite:${this.path}`, queue: QUEUE, options: OPTIONS, log, inFlight: 24 }
    const child = start(this.#t, 'producer', config, { cwd: this.#folder })
    this.#producers.push(child)
    this.#all.push(child)
  }

  startWorker(): void {
    const work = { concurrency: 20, transaction: this.#transaction }
    const log = join(this.#folder, 'log')
    const config: WorkerConfig = { url: `sqlite:${this.path}`, queue: QUEUE, options: OPTIONS, work, log, pause: 4 }
    const child = start(this.#t, 'worker', config, { cwd: this.#folder })
    this.#workers.push(child)
    this.#all.push(child)
  }

  #fill(): void {
    while (this.#producers.length < PRODUCERS) this.startProducer()
    while (this.#workers.length < WORKERS) this.startWorker()
  }

  /** Kills, at random moments under load, until there were that many kills. */
  async rage(kills: number): Promise<void> {
    this.#fill()
    for (let time = 1; this.kills < kills; time++) {
      const crew = [...this.#producers, ...this.#workers]
      await until(() => {
        for (const child of crew) if (!child.alive) throw new Error(`${child.role} ended by itself\n${child.words}`)
        return crew.filter((child) => child.said('busy').length > 0).length >= crew.length - 1
      }, 'most are at work')
      await sleep(this.#random() * 250)
      // With nobody left, whoever comes next finds the write-ahead log as the dead left it.
      if (time % 6 === 0) await this.#kill(crew)
      else await this.#kill([this.#victim()])
      this.#fill()
    }
  }

  #victim(): Child {
    const group = this.#random() < 0.7 ? this.#workers : this.#producers
    const victim = group[Math.floor(this.#random() * group.length)]
    assert.ok(victim)
    return victim
  }

  async #kill(victims: Child[]): Promise<void> {
    for (const victim of victims) victim.kill('SIGKILL')
    this.kills += victims.length
    this.#producers = this.#producers.filter((child) => !victims.includes(child))
    this.#workers = this.#workers.filter((child) => !victims.includes(child))
    await Promise.all(victims.map((child) => child.exited))
  }

  /** The last ones are killed as well; then one worker does what is left. */
  async settle(): Promise<void> {
    await this.#kill([...this.#producers, ...this.#workers])
    this.startWorker()
    await until(() => liveIn(this.path, QUEUE) === 0, 'everything is done')
    await this.#kill(this.#workers)
  }

  acknowledged(): string[] {
    const logs = readdirSync(this.#folder).filter((name) => name.startsWith('acknowledged-'))
    return logs.flatMap((name) => readFileSync(join(this.#folder, name), 'utf8').split('\n').filter(Boolean))
  }

  effects(): Effect[] {
    if (this.#transaction) {
      return look(this.path, 'select id, fence from effects').map((row) => ({
        id: String(row.id),
        fence: String(row.fence),
      }))
    }
    const log = join(this.#folder, 'log')
    const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : []
    return lines
      .filter((line) => line.startsWith('effect '))
      .map((line) => {
        const [, id = '', , fence = ''] = line.split(' ')
        return { id, fence }
      })
  }

  troubles(): string[] {
    return this.#all.flatMap((child) => child.said('trouble').map(({ message }) => String(message)))
  }

  stale(): number {
    return this.#all.reduce((sum, child) => sum + child.said('stale').length, 0)
  }
}

for (const transaction of [false, true]) {
  const mode = transaction ? 'transaction: true' : 'plain'
  test(`${mode}: nothing acknowledged is lost to SIGKILL${transaction ? ', nothing is applied twice' : ''}`, async (t) => {
    t.diagnostic(`MILLPOND_FAULT_SEED=${SEED}`)
    const scene = new Scene(t, transaction, seeded(SEED))
    await scene.rage(KILLS)
    await scene.settle()

    const acknowledged = scene.acknowledged()
    const effects = scene.effects()
    const done = new Set(effects.map(({ id }) => id))
    const lost = acknowledged.filter((id) => !done.has(id))
    const figures = {
      kills: scene.kills,
      acknowledged: acknowledged.length,
      done: done.size,
      duplicates: effects.length - done.size,
      lost: lost.length,
      stale: scene.stale(),
      seed: SEED,
    }
    const line = `${mode}: ${Object.entries(figures)
      .map(([name, figure]) => `${name} ${figure}`)
      .join('  ')}`
    t.diagnostic(line)
    console.log(line)

    assert.deepEqual(lost, [])
    assert.equal(new Set(acknowledged).size, acknowledged.length)
    assert.ok(acknowledged.length > KILLS * 10, 'this was no load')
    // A claim that is over cannot come again, so not even a repeated effect has the same fence.
    assert.equal(new Set(effects.map(({ id, fence }) => `${id} ${fence}`)).size, effects.length)
    if (transaction) assert.equal(figures.duplicates, 0)

    const jobs = look(scene.path, 'select id, state from millpond_jobs')
    assert.deepEqual(
      jobs.filter(({ state }) => state !== 'done'),
      [],
    )
    assert.deepEqual(new Set(jobs.map(({ id }) => id)), done)
    assert.deepEqual(faultsOf(scene.path), [])
    const { kept, real } = countsOf(scene.path, QUEUE)
    assert.deepEqual(kept, real)
    const [total] = look(
      scene.path,
      `select count from millpond_counts where (queue, kind, name) = (?, 'total', 'done')`,
      QUEUE,
    )
    assert.equal(total?.count, jobs.length)
    // Under a heavy load on a slow disk a lock may be held for long; anything else is a fault of ours.
    assert.deepEqual(
      scene.troubles().filter((trouble) => !trouble.includes('busyTimeout')),
      [],
    )
  })
}
