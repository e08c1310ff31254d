/**
 * Programs in two languages on one queue: a producer in one, a worker in the other, and both are killed under load.
 * What was acknowledged to the producer runs at least once, and ends as done. And workers of both languages on one queue with limits.
 */

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { isDeep } from '../support/depth.ts'
import { untilCalm } from '../support/until.ts'
import { mixedStores, type Place } from './places.ts'
import { exitCode, kill, type Language, lines, start } from './processes.ts'

const JOBS = 1_500
const KILL_PRODUCER_AT = JOBS / 4
const KILL_WORKER_AT = JOBS / 2

/** Of each group, at once. */
const LIMIT = 2
const GROUPS = 5
const BATCH = 100

// One store tells whether both languages do the same; a deep run has all.
for (const { name: store, skip, place } of isDeep ? mixedStores : mixedStores.slice(0, 1)) {
  for (const producer of ['TypeScript', 'Python'] as const) {
    const worker = producer === 'Python' ? 'TypeScript' : 'Python'
    test(`${store}: a producer in ${producer}, a worker in ${worker}, both killed`, { skip }, (t) =>
      load(t, place(), producer, worker),
    )
  }

  test(`${store}: workers in both languages keep the limit of each group`, { skip }, (t) => limited(t, place()))
}

/** Pushes until both languages have run jobs. The log says who ran what, and when: appends are in order. */
async function limited(t: TestContext, { url, options, folder }: Place) {
  const log = join(folder, 'runs')
  const args = [url, JSON.stringify(options), 'limited', log]
  const pond = await Millpond.open(url, options)
  t.after(() => pond.close())
  const queue = pond.queue<number>('limited', { limits: { group: { running: LIMIT } } })
  const runs = () => (existsSync(log) ? lines(readFileSync(log, 'utf8')) : [])
  const workers = [start(t, 'TypeScript', 'limited', args), start(t, 'Python', 'limited', args)]
  const ids = new Set<string>()
  await untilCalm(async () => {
    const ends = runs().filter((line) => line.startsWith('end'))
    if (ids.size - ends.length < BATCH) {
      const batch = Array.from({ length: BATCH }, (_, n) => queue.push(n, { group: `g${n % GROUPS}` }))
      for (const { id } of await Promise.all(batch)) ids.add(id)
    }
    return workers.length === new Set(ends.map((line) => line.split(' ')[3])).size && ends.length >= 2 * BATCH
  }, 'both languages have run jobs')
  await untilCalm(async () => (await queue.stats()).counts.done === ids.size, 'all are done')

  const running = new Map<string, number>()
  const ran = new Set<string>()
  let most = 0
  for (const line of runs()) {
    const [event, group = '', id = ''] = line.split(' ')
    ran.add(id)
    const now = (running.get(group) ?? 0) + (event === 'start' ? 1 : -1)
    running.set(group, now)
    most = Math.max(most, now)
  }
  assert.equal(most, LIMIT)
  assert.deepEqual(ran, ids)
  t.diagnostic(`${runs().length / 2} runs of ${ids.size} jobs, ${most} at once in a group, 0 lost`)
}

async function load(t: TestContext, place: Place, producer: Language, worker: Language) {
  const { url, options, folder } = place
  const log = join(folder, 'runs')
  const shared = [url, JSON.stringify(options), 'mixed']
  const acknowledged: string[] = []
  const runs = () => (existsSync(log) ? lines(readFileSync(log, 'utf8')) : [])
  const produce = () => {
    const rest = [`${acknowledged.length}`, `${JOBS - acknowledged.length}`]
    const child = start(t, producer, 'produce', [...shared, ...rest])
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part
      acknowledged.push(...lines(text))
      text = text.slice(text.lastIndexOf('\n') + 1)
    })
    return child
  }
  const work = () => start(t, worker, 'work', [...shared, log])

  const first = produce()
  await untilCalm(async () => acknowledged.length >= KILL_PRODUCER_AT, 'the first jobs are acknowledged')
  await kill(first)
  const early = work()
  const second = produce()
  await untilCalm(async () => runs().length >= KILL_WORKER_AT, 'half of the jobs ran')
  await kill(early)
  work()
  assert.equal(await exitCode(second), 0)
  assert.ok(acknowledged.length >= JOBS)

  const pond = await Millpond.open(url, options)
  t.after(() => pond.close())
  const open = new Set(acknowledged)
  await untilCalm(async () => {
    const states = await Promise.all([...open].map(async (id) => [id, (await pond.job(id))?.state] as const))
    for (const [id, state] of states) if (state === 'done') open.delete(id)
    return open.size === 0
  }, 'all that was acknowledged is done')
  const ran = new Set(runs())
  assert.deepEqual(
    acknowledged.filter((id) => !ran.has(id)),
    [],
  )
  t.diagnostic(`${acknowledged.length} acknowledged, ${runs().length} runs of ${ran.size} jobs, 0 lost`)
}
