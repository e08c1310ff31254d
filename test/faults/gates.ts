/** A file with workers on it whose jobs can be held, so that a test can let things happen between a job's start and its end. */

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { type Duration, Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Child, start } from './harness.ts'
import type { GatedConfig } from './roles/gated.ts'

export const QUEUE = 'jobs'

export interface Scene {
  path: string
  pond: Millpond
  worker(transaction: boolean, hold: GatedConfig['hold']): Child
}

export async function scene(t: TestContext, lease: Duration = '600ms', window: Duration = '1m'): Promise<Scene> {
  const folder = scratch(t)
  const path = join(folder, 'app.db')
  const db = new DatabaseSync(path)
  db.exec('create table effects (id text, fence integer)')
  db.close()
  const pond = await Millpond.open(`sqlite:${path}`)
  after(t, () => pond.close())
  return {
    path,
    pond,
    worker(transaction, hold) {
      const config: GatedConfig = {
        url: `sqlite:${path}?busyTimeout=200`,
        queue: QUEUE,
        options: { lease, retry: { backoff: () => 0 } },
        // By default so long that it buffers whatever there is once it has seen that jobs are short.
        work: { concurrency: 1, window, transaction },
        hold,
      }
      return start(t, 'gated', config)
    },
  }
}

/** Has the worker hold one job at its gate, with all the others buffered behind it. @returns the job that it holds, and all ids */
export async function occupy({ pond }: Scene, worker: Child, buffered = 20): Promise<{ held: string; ids: string[] }> {
  const jobs = pond.queue<{ gate?: true }>(QUEUE)
  await jobs.push({})
  await worker.hear('completed')
  const pushed = await jobs.pushMany([{ gate: true }, ...Array.from({ length: buffered }, () => ({}))])
  const { id } = await worker.hear('held')
  await until(async () => (await worker.ask('load')).buffered === buffered, 'the others are buffered')
  return { held: String(id), ids: pushed.map((each) => each.id) }
}
