/**
 * Four processes push random graphs over three queues and work them off, while they are killed (SIGKILL) and replaced. Every job ends as
 * its graph says, starts after its parents have ended, and starts again only if the process that had it was killed.
 * MILLPOND_FAULT_SEED sets the graphs, the victims and the moments.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { openStore } from '../../src/stores/open.ts'
import type { JobState } from '../../src/values/jobs/records.ts'
import { after, scratch } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { type Child, seeded, start } from './harness.ts'
import { DURABLE_STORES } from './places.ts'
import { endsOf, QUEUES, randomGraphs } from './random-graphs.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const KILLS = depth(2, 12)
const JOBS = depth(200, 4000)
const PROCESSES = 4
/** In ms: after it, what a killed process held starts again. */
const LEASE = 1000
const LONG = 86_400_000
/** Most ms for all. */
const BOUND = 60_000 + JOBS * 20
const LOOK = 1000

async function manyGraphs(t: TestContext, url: string): Promise<void> {
  const random = seeded(SEED)
  const ledger = join(scratch(t), 'ledger')
  writeFileSync(ledger, '')
  const store = await openStore(url, {})
  after(t, () => store.close())
  const { operations } = store
  for (const queue of QUEUES) await operations.configure({ queue, keepDone: LONG, keepDead: LONG })
  const graphs = randomGraphs(SEED, JOBS)
  const jobs = graphs.flat()

  const left = Array.from({ length: PROCESSES }, (_, nth) => [...graphs.keys()].filter((at) => at % PROCESSES === nth))
  const add = (nth: number) => start(t, 'grapher', { url, seed: SEED, graphs: left[nth] ?? [], ledger, lease: LEASE })
  const crew: Child[] = left.map((_, nth) => add(nth))
  const ended = async () => {
    for (const child of crew) assert.ok(child.alive, child.words)
    const stats = await operations.stats({})
    return stats.reduce((sum, { counts }) => sum + counts.done + counts.dead + counts.cancelled, 0)
  }
  for (let kill = 1; kill <= KILLS; kill++) {
    const goal = Math.floor((jobs.length * (kill - random())) / (KILLS + 1))
    await until(async () => (await ended()) >= goal, `${goal} jobs have ended`, BOUND)
    const nth = Math.floor(random() * crew.length)
    const victim = crew[nth]
    if (victim === undefined) continue
    victim.kill('SIGKILL')
    await victim.exited
    const pushed = new Set(victim.said('pushed').map(({ graph }) => graph))
    left[nth] = left[nth]?.filter((graph) => !pushed.has(graph)) ?? []
    crew[nth] = add(nth)
  }
  await until(async () => (await ended()) === jobs.length, `all of ${jobs.length} have ended, seed ${SEED}`, BOUND)
  for (const child of crew) child.send({ kind: 'close' })
  await Promise.all(crew.map((child) => child.exited))

  const states = new Map<string, JobState>()
  for (let at = 0; at < jobs.length; at += LOOK) {
    const found = await operations.find({ ids: jobs.slice(at, at + LOOK).map(({ id }) => id) })
    for (const record of found) if (record !== null) states.set(record.id, record.state)
  }
  // Times of the store do not tell: a claim that waits for a lock keeps the time at which it began.
  const lines = readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
  const starts = lines.filter((line) => line.startsWith('+'))
  const first = new Map(lines.map((line, at) => [line, at] as const).reverse())
  const ends = endsOf(jobs)
  for (const { id, parents } of jobs) {
    assert.equal(states.get(id), ends.get(id), `${id}, seed ${SEED}`)
    const startedAt = first.get(`+${id}`) ?? Number.POSITIVE_INFINITY
    for (const parent of parents) {
      // One that was cancelled never ran.
      const endedAt = ends.get(parent) === 'cancelled' ? -1 : (first.get(`-${parent}`) ?? Number.POSITIVE_INFINITY)
      assert.ok(startedAt >= endedAt, `${id} started before ${parent} had ended, seed ${SEED}`)
    }
  }
  // A job starts once, and once more for each lease of it that ran out.
  const lost = (await operations.stats({})).reduce((sum, { totals }) => sum + totals.lost, 0)
  const again = starts.length - new Set(starts).size
  assert.ok(again <= lost, `${again} starts too many, ${lost} lost leases, seed ${SEED}`)
  t.diagnostic(`${jobs.length} jobs of ${graphs.length} graphs, ${KILLS} kills, ${again} started again, seed ${SEED}`)
}

describe('graphs end as they must, whoever is killed', () => {
  for (const [name, urlOf] of Object.entries(DURABLE_STORES)) {
    test(name, async (t) => {
      const url = await urlOf(t)
      if (url !== undefined) await manyGraphs(t, url)
    })
  }
})
