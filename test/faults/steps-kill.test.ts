/**
 * Processes whose jobs have many steps are killed at random moments and replaced; signals come before, while and after jobs wait for them.
 * In the end every job is done, with the results of steps that ran once: a step ran again only where its process was killed before its
 * record, and what a step wrote in a transaction is there once. MILLPOND_FAULT_SEED sets the moments and the victims.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { type Child, seeded, start } from './harness.ts'
import { PLACES } from './places.ts'
import type { StepperConfig } from './roles/stepper.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const JOBS = depth(30, 1000)
const KILLS = depth(3, 60)
const STEPS = 10
const PROCESSES = 3
const QUEUE = 'steps'

async function rage(t: TestContext, name: string): Promise<void> {
  const place = await PLACES[name]?.(t)
  if (place === undefined) return
  const random = seeded(SEED)
  const ledger = join(scratch(t), 'ledger')
  const table = place.transaction ? place.table : undefined
  const config: StepperConfig = { url: place.url, queue: QUEUE, steps: STEPS, ledger, table }
  const pond = await Millpond.open(place.url)
  after(t, () => pond.close())
  const queue = pond.queue<number>(QUEUE, {
    lease: '2s',
    retry: { attempts: 1000, backoff: { type: 'fixed', base: 0 } },
  })
  const ids = (await queue.pushMany(Array.from({ length: JOBS }, (_, n) => n))).map(({ id }) => id)

  const all: Child[] = []
  let living: Child[] = []
  const killed = new Set<number>()
  const fill = () => {
    while (living.length < PROCESSES) {
      const child = start(t, 'stepper', config)
      living.push(child)
      all.push(child)
    }
  }
  fill()
  let signalled = 0
  const signal = async (to: number) => {
    for (; signalled < Math.min(to, JOBS); signalled++) await pond.signal(ids[signalled] ?? '', 'go', signalled * 3)
  }
  await signal(JOBS / 4)
  const done = async () => (await queue.stats()).counts.done
  for (let kills = 0; kills < KILLS && (await done()) < JOBS; kills++) {
    let busy: Child[] = []
    await until(() => {
      busy = living.filter((child) => child.said('busy').length > 0)
      return busy.length > 0
    }, 'a process is at work')
    // From its first step to some way on.
    await new Promise((resolve) => setTimeout(resolve, random() * 300))
    const victim = busy[Math.floor(random() * busy.length)]
    assert.ok(victim)
    victim.kill('SIGKILL')
    await victim.exited
    killed.add(victim.pid)
    living = living.filter((child) => child !== victim)
    fill()
    await signal(JOBS / 4 + (JOBS * kills) / KILLS)
  }
  await signal(JOBS)
  await until(async () => (await done()) === JOBS, 'all jobs are done')

  const runs = new Map<string, number[]>()
  for (const line of readFileSync(ledger, 'utf8').trim().split('\n')) {
    const [id = '', step = '', pid] = line.split(' ')
    const key = `${id} ${step}`
    runs.set(key, [...(runs.get(key) ?? []), Number(pid)])
  }
  assert.equal(runs.size, JOBS * STEPS)
  const again = [...runs.values()].filter(({ length }) => length > 1)
  for (const pids of again)
    assert.ok(
      pids.slice(0, -1).every((pid) => killed.has(pid)),
      'only a killed process forgets',
    )
  for (const [n, id] of ids.entries()) {
    const expected: unknown[] = []
    for (let step = 0; step < STEPS; step++) {
      expected.push(n + step)
      if (step === n % STEPS) expected.push(n * 3)
      if (step === (n + 4) % STEPS) expected.push(n * 2)
    }
    assert.deepEqual((await pond.job(id))?.result, expected)
  }
  const effects = await place.effects()
  assert.deepEqual(effects.map(({ id }) => id).sort(), table === undefined ? [] : [...ids].sort())
  assert.deepEqual(
    all.flatMap((child) => child.said('dead')),
    [],
  )
  t.diagnostic(`${name}: ${JOBS} jobs, ${killed.size} kills, ${again.length} steps ran again, seed ${SEED}`)
  for (const child of living) child.kill('SIGKILL')
}

describe('steps under kills', { concurrency: 3 }, () => {
  for (const name of ['sqlite, transaction: true', 'redis', 'postgres, transaction: true'])
    test(name, (t) => rage(t, name))
})
