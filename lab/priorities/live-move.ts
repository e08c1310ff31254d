/** Jobs are moved from one store to another while a producer and workers go on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import { move } from '../../src/move/index.ts'

const QUEUE = 'reports'
const CHUNK = 500
/** Of each worker: 20 slots of 20 ms, so that the backlog outlasts the move. */
const SLOTS = 20
const TAKES = 20
/** New jobs each tick, in ms. */
const TICK = 20
const POLL = 50
/** From the start of the producer to the move, and from there until the producer uses the target. */
const BEFORE = 1000
const PATIENCE = 90_000

export interface Outcome {
  jobs: number
  moved: number
  lost: number
  /** Runs beyond the first of the same job. */
  twice: number
  /** Jobs that the move carried per second, while it carried any. */
  rate: number
  /** The longest time without any job done, in ms. */
  pause: number
  /** Jobs done by seconds since the start, each over a quarter of a second. */
  done: { source: [seconds: number, jobs: number][]; target: [seconds: number, jobs: number][] }
  /** When the move began and when the source was empty, in seconds since the start. */
  began: number
  over: number
}

/** @param backlog jobs that wait at the source before the move @param rate new jobs/s */
export async function run(from: string, to: string, backlog: number, rate: number): Promise<Outcome> {
  const [source, target] = [await Millpond.open(from), await Millpond.open(to)]
  const [old, fresh] = [source.queue<number>(QUEUE), target.queue<number>(QUEUE)]
  const runs = new Map<number, number>()
  const start = performance.now()
  const elapsed = () => (performance.now() - start) / 1000
  const done = { source: [] as number[], target: [] as number[] }
  const handler =
    (where: keyof typeof done) =>
    async ({ data }: { data: number }) => {
      await sleep(TAKES)
      runs.set(data, (runs.get(data) ?? 0) + 1)
      done[where].push(elapsed())
    }
  let next = 0
  const numbers = (count: number) => Array.from({ length: count }, () => next++)
  try {
    while (next < backlog) await old.pushMany(numbers(Math.min(CHUNK, backlog - next)))
    old.work(handler('source'), { concurrency: SLOTS })
    let queue = old
    let isProducing = true
    const produce = async () => {
      for (let due = performance.now(); isProducing; due += TICK) {
        await queue.pushMany(numbers(Math.round((rate * TICK) / 1000)))
        await sleep(Math.max(0, due + TICK - performance.now()))
      }
    }
    const producing = produce()
    await sleep(BEFORE)
    // Workers first, then the jobs, the producer last.
    fresh.work(handler('target'), { concurrency: SLOTS })
    const stop = new AbortController()
    const began = elapsed()
    let over = began
    let seen = 0
    const moving = move(from, to, {
      queues: [QUEUE],
      follow: true,
      signal: stop.signal,
      onProgress({ done: carried }) {
        if (carried > seen) over = elapsed()
        seen = carried
      },
    })
    await sleep(BEFORE)
    queue = fresh
    await sleep(BEFORE)
    isProducing = false
    await producing
    const end = performance.now() + PATIENCE
    while (runs.size < next && performance.now() < end) await sleep(POLL)
    stop.abort()
    const { moved } = await moving
    const times = [...done.source, ...done.target].sort((a, b) => a - b)
    const gaps = times.slice(1).map((time, at) => (time - (times[at] ?? time)) * 1000)
    return {
      ...{ jobs: next, moved, lost: next - runs.size, began, over },
      twice: [...runs.values()].reduce((sum, count) => sum + count - 1, 0),
      rate: moved / Math.max(0.001, over - began),
      pause: Math.max(0, ...gaps),
      done: { source: binned(done.source), target: binned(done.target) },
    }
  } finally {
    await Promise.all([source.close({ timeout: 1000 }), target.close({ timeout: 1000 })])
  }
}

const BIN = 0.25

/** Jobs per second in each quarter of a second. */
function binned(times: readonly number[]): [seconds: number, jobs: number][] {
  const counts = new Map<number, number>()
  for (const time of times) counts.set(Math.floor(time / BIN), (counts.get(Math.floor(time / BIN)) ?? 0) + 1)
  const last = Math.max(0, ...counts.keys())
  return Array.from({ length: last + 1 }, (_, bin) => [bin * BIN, (counts.get(bin) ?? 0) / BIN])
}
