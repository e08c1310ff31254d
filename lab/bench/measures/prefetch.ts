/**
 * Whether a short job waits behind a long one: one long job in the middle of many short ones, over four workers with one
 * slot each. A job is counted as held up when it starts although another worker had been idle for a while by then.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../../src/index.ts'
import { Calls } from '../../store.ts'
import type { Measure, Outcome } from '../task.ts'

const QUEUE = 'mixed'
const WORKERS = 4
/** A worker is idle, not just between two jobs, after this long without one, in ms. */
const IDLE = 25

interface Run {
  worker: number
  long: boolean
  started: number
  ended: number
}
type Work = (worker: number, n: number) => Promise<void>

export const prefetch: Measure<'prefetch'> = async ({ url, ...task }) => {
  const pond = await Millpond.open(url)
  const queue = pond.queue<number>(QUEUE, { keep: { done: 0 } })
  await queue.pushMany(Array.from({ length: task.count + 1 }, (_, n) => n))
  const runs: Run[] = []
  const work: Work = async (worker, n) => {
    const run: Run = { worker, long: n === Math.floor(task.count / 2), started: performance.now(), ended: Infinity }
    runs.push(run)
    await sleep(run.long ? task.long : task.short)
    run.ended = performance.now()
  }
  const began = performance.now()
  if (task.fixed === undefined) {
    for (let worker = 0; worker < WORKERS; worker++) {
      queue.work((job) => work(worker, job.data), { concurrency: 1, window: task.window ?? 50 })
    }
    while (runs.length <= task.count || runs.some(({ ended }) => ended === Infinity)) await sleep(10)
    await pond.close()
  } else {
    await pond.close()
    await fixed(url, task.fixed, work)
  }
  return judge(runs, began)
}

/** Claims a fixed number, runs them one after the other, and only then claims again. */
async function fixed(url: string, limit: number, work: Work): Promise<void> {
  const store = await Calls.open(url, QUEUE)
  const consume = async (worker: number) => {
    for (;;) {
      const jobs = await store.claim(`fixed ${worker}`, limit, 60_000)
      if (jobs.length === 0) return
      for (const job of jobs) {
        await work(worker, Number(job.data.body))
        await store.complete([job])
      }
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => consume(worker)))
  await store.close()
}

function judge(runs: readonly Run[], began: number): Outcome {
  const short = runs.filter(({ long }) => !long)
  const heldUp = short.filter((job) => anotherIdle(runs, job))
  return {
    'last short': (Math.max(...short.map(({ ended }) => ended)) - began) / 1000,
    'held up': heldUp.length,
  }
}

function anotherIdle(runs: readonly Run[], job: Run): boolean {
  for (let worker = 0; worker < WORKERS; worker++) {
    if (worker === job.worker) continue
    const own = runs.filter((run) => run.worker === worker && run.started < job.started)
    const last = Math.max(0, ...own.map(({ ended }) => ended))
    if (own.length > 0 && last < job.started - IDLE) return true
  }
  return false
}
