/** Sweeps, fires what is due, and works off the jobs, by a clock that the test moves. */
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError } from '../../../src/index.ts'
import { openStore } from '../../../src/stores/open.ts'
import { Scheduler } from '../../../src/worker/scheduler.ts'
import { config, onHearing, say } from './role.ts'

export interface SchedulerConfig {
  url: string
  queue: string
  /** Holds the time. */
  clock: string
  /** Where the ids of claimed jobs are written. */
  ledger: string
}

/** In ms: between two sweeps that had nothing to do. */
const PAUSE = 20
/** Jobs that are claimed are not lost within the test. */
const LEASE = 2_073_600_000

const { url, queue, clock, ledger } = config<SchedulerConfig>()
const store = await openStore(url, { clock: () => Number(readFileSync(clock, 'utf8')) })
const scheduler = new Scheduler(store, ({ code, message }) => say('trouble', { code, message }))
let over = false
onHearing('close', () => {
  over = true
})

async function round(): Promise<boolean> {
  const { schedules } = await store.operations.sweep({ limit: 1000 })
  if (schedules !== null) await scheduler.fire(schedules)
  const { jobs } = await store.operations.claim({ queue, worker: `${process.pid}`, limit: 100, lease: LEASE })
  if (jobs.length > 0) appendFileSync(ledger, jobs.map(({ id }) => `${id}\n`).join(''))
  await store.operations.complete({ queue, items: jobs.map(({ id, fence }) => ({ id, fence, result: null })) })
  return schedules !== null || jobs.length > 0
}

say('busy')
while (!over) {
  try {
    if (!(await round())) await sleep(PAUSE)
  } catch (error) {
    // Of a firing that another process has ended meanwhile.
    if (!isMillpondError(error, 'StoreUnavailable') && !isMillpondError(error, 'StoreBusy')) throw error
  }
}
await store.close()
say('closed')
process.disconnect()
