/** A process with a spilling store gets SIGTERM in the middle of its work, or is killed; another one takes up its jobs. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { type Child, run } from '../api/child.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

const BATCH = 50

/** Pushes batches and works on them, none claimed ahead, and prints the numbers that are accepted (+) and done (-). */
const CODE = `
  import { writeSync } from 'node:fs'
  const { spill, capacity } = JSON.parse(url)
  const pond = await Millpond.open('memory:', { spill, signals: true })
  const queue = pond.queue('q', { capacity, whenFull: 'spill' })
  queue.work(async ({ data }) => {
    await new Promise((resolve) => setTimeout(resolve, 1))
    writeSync(1, '-' + data + '\\n')
  }, { concurrency: 4, window: 0 })
  for (let n = 0; !pond.stopping.aborted; n += ${BATCH}) {
    const numbers = Array.from({ length: ${BATCH} }, (_, i) => n + i)
    await queue.pushMany(numbers)
    writeSync(1, numbers.map((number) => '+' + number + '\\n').join(''))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
`

function printed(child: Child): { accepted: string[]; done: string[] } {
  const lines = child.text().split('\n')
  const of = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1))
  return { accepted: of('+'), done: of('-') }
}

/** Runs all that the spill store has, as a new process would that starts `later` ms from now. */
async function rest(url: string, later = 0): Promise<string[]> {
  const pond = await Millpond.open('memory:', { spill: { url, clock: () => Date.now() + later } })
  const done: string[] = []
  const queue = pond.queue<number>('q', { whenFull: 'spill' })
  queue.work(({ data }) => void done.push(String(data)), { concurrency: 100 })
  await until(async () => {
    const { counts } = await queue.stats()
    return counts.waiting + counts.running + counts.scheduled === 0
  })
  await pond.close()
  return done
}

function start(t: TestContext, capacity: number): { spill: string; child: Child } {
  const spill = `sqlite:${join(scratch(t), 'spill.db')}`
  const child = run(JSON.stringify({ spill, capacity }), CODE)
  after(t, () => child.process.kill('SIGKILL'))
  return { spill, child }
}

/** Waits for so many accepted jobs and one that is done. A child that ended by itself says why. */
async function untilAccepted(child: Child, count: number): Promise<void> {
  const seen = () => {
    const { accepted, done } = printed(child)
    return { accepted: accepted.length, done: done.length }
  }
  const enough = () => {
    const { exitCode, signalCode } = child.process
    assert.equal(exitCode ?? signalCode, null, `the child ended: ${child.text().slice(-500)}`)
    return seen().accepted >= count && seen().done > 0
  }
  await until(enough, `${count} jobs are accepted`).catch((error: Error) => {
    throw new Error(`${error.message}; it had ${JSON.stringify(seen())}`, { cause: error })
  })
}

const inOrder = (numbers: readonly string[]): string[] => numbers.toSorted((a, b) => Number(a) - Number(b))

for (const capacity of [1, 1_000, 3_000]) {
  test(`SIGTERM in the middle of a run, ${capacity} in memory: each job is done once, by one process or the other`, async (t) => {
    const { spill, child } = start(t, capacity)
    await untilAccepted(child, capacity + 10 * BATCH)
    child.process.kill('SIGTERM')
    assert.equal(await child.end(), 0, child.text().slice(-500))
    const { accepted, done } = printed(child)
    const others = await rest(spill)
    assert.ok(others.length > 0)
    const all = new Set([...done, ...others])
    assert.deepEqual(
      accepted.filter((number) => !all.has(number)),
      [],
      'none is lost',
    )
    assert.equal(done.length + others.length, all.size, 'none is done twice')
    assert.deepEqual(others, inOrder(others), 'and the others are done in order')
  })
}

test('a killed process loses what was in memory, and no more', async (t) => {
  const { spill, child } = start(t, 100)
  await untilAccepted(child, 600)
  child.process.kill('SIGKILL')
  await new Promise((resolve) => child.process.once('close', resolve))
  const { accepted, done } = printed(child)
  // What was on its way back to memory comes again after a minute.
  const all = new Set([...done, ...(await rest(spill, 61_000))])
  const missing = accepted.filter((number) => !all.has(number))
  // Memory holds its capacity and what runs; a batch may have been accepted beyond it.
  assert.ok(missing.length <= 160, `${missing.length} of ${accepted.length} were lost`)
})
