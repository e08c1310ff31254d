/** What the tests of isolated handlers share. */
import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type IsolatedWorkOptions, Millpond, type OpenOptions, type Queue, type Worker } from '../../src/index.ts'
import type { JobError } from '../../src/values/jobs/records.ts'
import { inState } from '../api/suite.ts'
import { after } from '../support/cleaning.ts'
import type { Told } from './modules/told.ts'

export const moduleOf = (name: string): URL => new URL(`modules/${name}.ts`, import.meta.url)

export interface Isolated {
  pond: Millpond
  queue: Queue<Told>
  worker: Worker
  /** Pushes the job and waits for its result. */
  run(told: Told): Promise<unknown>
  /** Pushes a job that fails in its only attempt. */
  failure(told: Told): Promise<JobError>
}

/** A pond with a worker for `modules/told.ts`; its jobs have one attempt. */
export async function isolated(
  t: TestContext,
  options: Partial<IsolatedWorkOptions> = {},
  { url = 'memory:', ...open }: OpenOptions & { url?: string } = {},
): Promise<Isolated> {
  const pond = await Millpond.open(url, open)
  after(t, () => pond.close({ timeout: 100 }))
  const queue = pond.queue<Told>('q', { retry: { attempts: 1 } })
  // Silences the warnings about failures, which are what these tests are about.
  pond.on('dead', () => {})
  const worker = queue.work(moduleOf('told'), { isolate: {}, concurrency: 1, ...options })
  return {
    pond,
    queue,
    worker,
    async run(told) {
      const { id } = await queue.push(told)
      return pond.result(id)
    },
    async failure(told) {
      const { id } = await queue.push(told)
      const { error } = await inState(pond, id, 'dead')
      if (error === null) throw new Error('a dead job without an error')
      return error
    },
  }
}

/** Linux alone tells. A process that has ended and that nobody has asked for is over. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
