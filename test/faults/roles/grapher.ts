/** Pushes its share of the random graphs, and works off jobs of all. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError } from '../../../src/index.ts'
import type { Store } from '../../../src/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { newJobOf, QUEUES, randomGraph } from '../random-graphs.ts'
import { config, onHearing, say } from './role.ts'

export interface GrapherConfig {
  url: string
  seed: number
  /** Numbers of the graphs that it pushes, those of a process that was killed among them. */
  graphs: readonly number[]
  /** Where it writes the ids of what it starts, behind a +, and of what it ends, behind a -. */
  ledger: string
  lease: number
}

/** In ms: after a round that found nothing. */
const PAUSE = 20
const ERROR = { code: 'HandlerFailed', name: 'Error', message: 'it fails' }

const { url, seed, graphs, ledger, lease } = config<GrapherConfig>()
const store: Store = await openStore(url, {})
const { operations } = store
let over = false
onHearing('close', () => {
  over = true
})

const passes = (error: unknown): boolean =>
  isMillpondError(error, 'StoreUnavailable') || isMillpondError(error, 'StoreBusy')

async function pushAll(): Promise<void> {
  for (const graph of graphs) {
    for (let isPushed = false; !isPushed && !over; ) {
      try {
        const outcomes = await operations.push({ jobs: randomGraph(seed, graph).map(newJobOf), whole: true })
        const other = outcomes.find(({ status }) => status !== 'pushed' && status !== 'existing')
        if (other !== undefined) throw new Error(`graph ${graph}: ${other.status} ${other.parent ?? ''}`)
        isPushed = true
      } catch (error) {
        if (!passes(error)) throw error
      }
    }
    say('pushed', { graph })
  }
}

async function round(queue: string): Promise<number> {
  const { jobs } = await operations.claim({ queue, worker: `${process.pid}`, limit: 20, lease })
  if (jobs.length === 0) return 0
  appendFileSync(ledger, jobs.map(({ id }) => `+${id}\n`).join(''))
  // So that a kill meets it with jobs in hand.
  await sleep(2)
  appendFileSync(ledger, jobs.map(({ id }) => `-${id}\n`).join(''))
  const failing = jobs.filter(({ data }) => data.body === 'true')
  const done = jobs.filter(({ data }) => data.body !== 'true')
  await operations.fail({ queue, items: failing.map(({ id, fence }) => ({ id, fence, error: ERROR, delay: null })) })
  await operations.complete({ queue, items: done.map(({ id, fence }) => ({ id, fence, result: null })) })
  return jobs.length
}

async function work(): Promise<void> {
  while (!over) {
    try {
      let count = 0
      for (const queue of QUEUES) count += await round(queue)
      const { more } = await operations.sweep({ limit: 1000 })
      if (count === 0 && !more) await sleep(PAUSE)
    } catch (error) {
      if (!passes(error)) throw error
    }
  }
}

say('busy')
await Promise.all([pushAll(), work()])
await store.close()
say('closed')
process.disconnect()
