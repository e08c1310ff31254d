/**
 * Processes fire schedules for ten days of a clock that the test moves, across a change of clocks in two zones, while they are killed
 * (SIGKILL) and replaced. Each time has exactly one job. MILLPOND_FAULT_SEED sets the victims and the moments.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { openStore } from '../../src/stores/open.ts'
import { firingId } from '../../src/values/schedules/firing.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { timesOf } from '../../src/values/schedules/times.ts'
import { after, scratch } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { type Child, seeded, start } from './harness.ts'
import { DURABLE_STORES } from './places.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const KILLS = depth(2, 12)
const PROCESSES = depth(2, 4)
const SCHEDULES = depth(30, 240)
const QUEUE = 'reports'
const BEGIN = Date.UTC(2026, 9, 23, 12)
const DAY = 86_400_000
const END = BEGIN + 10 * DAY
const STEP = DAY / 4
/** More than what the clock goes on within a step. */
const MARGIN = 60_000
const ZONES = ['Europe/Paris', 'America/New_York', 'Australia/Sydney']

function declarationOf(n: number): Declaration {
  const minute = n % 60
  const lines = ['every 12h', `${minute} 2 * * *`, `${minute} ${n % 24} * * *`, `${minute} */12 * * 1-5`]
  return {
    ...{ name: `schedule-${n}`, version: '1', when: lines[n % lines.length] ?? '', tz: ZONES[n % ZONES.length] ?? '' },
    ...{
      missed: 'all',
      jitter: 0,
      from: n % 4 === 0 ? BEGIN + n * 1000 : null,
      until: null,
      paused: false,
      again: false,
    },
    job: {
      ...{ queue: QUEUE, priority: 4, key: null, group: null, cost: 1, attempts: 1, timeout: null },
      data: { encoding: 'json', body: String(n) },
    },
  }
}

/** The times of all, in order, each with the id of its job. */
function expectedOf(declarations: readonly Declaration[]): { time: number; id: string }[] {
  const all = declarations.flatMap((declaration) => {
    const times = timesOf(declaration)
    const own: { time: number; id: string }[] = []
    for (let at = times.after(BEGIN); at !== null && at <= END; at = times.after(at))
      own.push({ time: at, id: firingId(declaration.name, at).id })
    return own
  })
  return all.sort((a, b) => a.time - b.time)
}

async function tenDays(t: TestContext, url: string): Promise<void> {
  const random = seeded(SEED)
  const folder = scratch(t)
  const [clock, ledger] = [join(folder, 'clock'), join(folder, 'ledger')]
  writeFileSync(ledger, '')
  let now = BEGIN
  const setClock = (): void => {
    writeFileSync(`${clock}.new`, String(now))
    renameSync(`${clock}.new`, clock)
  }
  setClock()
  const store = await openStore(url, { clock: () => now })
  after(t, () => store.close())
  const { operations } = store
  await operations.configure({ queue: QUEUE, keepDone: 0 })
  const declarations = Array.from({ length: SCHEDULES }, (_, n) => declarationOf(n))
  await operations.declare({ schedules: declarations })
  const expected = expectedOf(declarations)
  const pushed = async () => (await operations.stats({ queue: QUEUE }))[0]?.totals.pushed ?? 0

  const add = () => start(t, 'scheduler', { url, queue: QUEUE, clock, ledger })
  const crew: Child[] = Array.from({ length: PROCESSES }, add)
  const assertAlive = (): void => {
    for (const child of crew) assert.ok(child.alive, child.words)
  }
  const comesTo = (goal: number) =>
    until(async () => {
      assertAlive()
      const count = await pushed()
      assert.ok(count <= expected.length, `${count} pushed`)
      return count >= goal
    }, `${goal} jobs are pushed`)
  await Promise.all(crew.map((child) => child.hear('busy')))
  // All are planned.
  await until(async () => {
    const page = await operations.schedules({ limit: SCHEDULES })
    return page.every(({ planned }) => planned)
  }, 'all schedules are planned')

  let done = 0
  let kills = 0
  const steps = (END - BEGIN) / STEP
  for (let step = 1; step <= steps; step++) {
    // A firing that a killed process has decided is another one's once it is a second old, so the clock goes on after each kill.
    now = BEGIN + step * STEP - MARGIN
    setClock()
    const soon = expected.filter(({ time }) => time <= now).length
    while (kills < Math.floor((KILLS * step) / steps)) {
      // In the middle of what has just come due.
      await comesTo(done + Math.floor(random() * (soon - done)))
      const nth = Math.floor(random() * crew.length)
      crew[nth]?.kill('SIGKILL')
      await crew[nth]?.exited
      crew[nth] = add()
      kills++
      now += 2000
      setClock()
    }
    now = BEGIN + step * STEP
    setClock()
    const goal = expected.filter(({ time }) => time <= now).length
    await comesTo(goal)
    assert.equal(await pushed(), goal, `after ${step} steps, seed ${SEED}`)
    done = goal
  }
  await until(() => crew.every((child) => child.said('busy').length > 0), 'all are back')
  for (const child of crew) child.send({ kind: 'close' })
  await Promise.all(crew.map((child) => child.exited))
  assert.equal(await pushed(), expected.length)
  const ran = new Set(readFileSync(ledger, 'utf8').split('\n'))
  // What a killed process had claimed is still there.
  const missing = expected.filter(({ id }) => !ran.has(id)).map(({ id }) => id)
  const found = await operations.find({ ids: missing })
  assert.ok(
    found.every((job) => job !== null),
    'a job is neither done nor there',
  )
  const left = await operations.schedules({ limit: SCHEDULES })
  assert.ok(left.every(({ nextAt }) => nextAt !== null && nextAt > END))
  t.diagnostic(`${expected.length} times, ${kills} kills, seed ${SEED}`)
}

describe('each time of each schedule has one job, whoever is killed', () => {
  for (const [name, urlOf] of Object.entries(DURABLE_STORES)) {
    test(name, async (t) => {
      const url = await urlOf(t)
      if (url !== undefined) await tenDays(t, url)
    })
  }
})
