/** The workers of a pond: passes bells and pushes on to them, and registers them for `pond.workers`. With any, it sweeps. */

import type { Bell, Store } from '../store.ts'
import type { NewJob } from '../values/jobs/records.ts'
import type { CloseReport } from '../values/options/close-options.ts'
import { WorkerRegistry } from '../worker/registry.ts'
import type { Sweeper } from '../worker/sweeper.ts'
import type { Worker } from '../worker/worker.ts'
import type { BellListener } from './bell-listener.ts'

export class PondWorkers {
  readonly registry: WorkerRegistry
  readonly #sweeper: Sweeper
  readonly #bells: BellListener
  /** Each with what removes it from the registry. */
  readonly #workers = new Map<Worker, () => void>()

  constructor(store: Store, sweeper: Sweeper, bells: BellListener) {
    this.registry = new WorkerRegistry(store)
    this.#sweeper = sweeper
    this.#bells = bells
  }

  get all(): Worker[] {
    return [...this.#workers.keys()]
  }

  get size(): number {
    return this.#workers.size
  }

  add(worker: Worker): void {
    this.#workers.set(
      worker,
      this.registry.add(worker.id, () => beatOf(worker)),
    )
    this.#bells.need()
    this.#sweeper.start()
  }

  remove(worker: Worker): void {
    this.#workers.get(worker)?.()
    this.#workers.delete(worker)
    this.#bells.release()
    if (this.#workers.size === 0) void this.#sweeper.stop()
  }

  /** Jobs are on their way to the store. An idle worker's claim goes right behind a push to its queue. */
  expect(jobs: readonly NewJob[]): void {
    for (const worker of this.#workers.keys()) {
      if (jobs.some(({ queue, delay, runAt }) => queue === worker.queue && delay === 0 && runAt === null))
        worker.expect()
    }
  }

  rung(bell: Extract<Bell, { kind: 'work' | 'cancelled' }>): void {
    for (const worker of this.#workers.keys()) {
      if (worker.queue !== bell.queue) continue
      if (bell.kind === 'work') worker.wake()
      else worker.checkCancelled(bell.ids)
    }
  }

  /** Closes all at once. @returns the sums */
  async close(timeout: number): Promise<CloseReport> {
    const reports = await Promise.all([...this.#workers.keys()].map((worker) => worker.close({ timeout })))
    const untold = reports.reduce((sum, report) => sum + (report.untold ?? 0), 0)
    return {
      finished: reports.reduce((sum, report) => sum + report.finished, 0),
      givenBack: reports.reduce((sum, report) => sum + report.givenBack, 0),
      ...(untold > 0 && { untold }),
    }
  }
}

function beatOf({ id, queue, load, lanes }: Worker) {
  return { id, queue, slots: load.slots, busy: load.running, lanes }
}
