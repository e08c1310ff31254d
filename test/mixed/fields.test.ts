/** What one language writes, the other reads: every field of a job, its payloads, its settings and its end. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { before, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { type JobInfo, Millpond } from '../../src/index.ts'
import { PYTHON_FOLDER, type Python, pythonEnvironment } from '../python/environment.ts'
import { untilCalm } from '../support/until.ts'
import { mixedStores, type Place } from './places.ts'

const execute = promisify(execFile)

let python: Python
before(async () => {
  python = await pythonEnvironment()
})

async function inPython(place: Place, role: 'push' | 'run' | 'find', ...args: string[]): Promise<string[]> {
  const all = ['-m', 'tests.fields', role, place.url, JSON.stringify(place.options), ...args]
  const { stdout } = await execute(python.program, all, {
    cwd: PYTHON_FOLDER,
    env: { ...process.env, ...python.variables },
  })
  return stdout.split('\n').slice(0, -1)
}

async function open(t: TestContext, place: Place): Promise<Millpond> {
  const pond = await Millpond.open(place.url, place.options)
  t.after(() => pond.close())
  return pond
}

const bytes = new Uint8Array([1, 255])
const written = { n: 1, bytes, big: 2n ** 63n, large: 2 ** 40, text: 'é€🌊\0' }
const readInPython = { n: 1, bytes: '01ff', big: 2n ** 63n, large: 2 ** 40, text: 'é€🌊\0' }

/** JSON of Python has integers of any size. */
const fromPython = (line = ''): Record<string, unknown> => {
  const found = JSON.parse(line.replaceAll('9223372036854775808', '"9223372036854775808"'))
  for (const value of [found.data, found.result]) if (value?.big !== undefined) value.big = BigInt(value.big)
  return found
}

for (const { name, skip, place } of mixedStores) {
  test(`${name}: Python finds what TypeScript pushed`, { skip }, async (t) => {
    const at = place()
    const pond = await open(t, at)
    const options = {
      priority: 7,
      key: 'welcome:42',
      group: 'tenant-7',
      cost: 3,
      attempts: 3,
      timeout: 5000,
      trace: '00-1',
    }
    const { id } = await pond.queue('q').push(written, { ...options, delay: '1h' })
    const job = await pond.job(id)
    assert.ok(job)
    const found = fromPython((await inPython(at, 'find', id))[0])
    const times = { pushed_at: job.pushedAt.getTime(), due_at: job.dueAt.getTime() }
    const empty = { started_at: null, finished_at: null, worker: null, progress: null, result: null, error: null }
    const plain = { log: [], unique: null, follows: false, after: [], on_dead: null, waits_for: null }
    const stepless = { journal: null, parked: null, entries: [] }
    assert.deepEqual(found, {
      ...{ id, queue: 'q', state: 'scheduled', attempt: 0, fence: job.fence, data: readInPython },
      ...options,
      ...{ ...times, ...empty, ...plain, ...stepless },
    })
  })

  test(`${name}: TypeScript finds what Python pushed, and Python what TypeScript ran`, { skip }, async (t) => {
    const at = place()
    const pond = await open(t, at)
    const [id = ''] = await inPython(at, 'push', 'q')
    const job = await pond.job(id)
    assert.ok(job)
    const { state, priority, attempts, key, group, timeout, trace, data } = job
    assert.deepEqual(
      { state, priority, attempts, key, group, timeout, trace, data },
      {
        ...{ state: 'waiting', priority: 6, attempts: 7, key: 'welcome:42', group: 'tenant-7', timeout: 5000 },
        ...{ trace: '00-1', data: written },
      },
    )
    pond.queue('q').work(async (each, ctx) => {
      if (each.attempt === 1) throw new RangeError('first 🌊')
      await ctx.progress({ half: bytes })
      // It goes to the store with the next extension.
      await untilCalm(async () => (await pond.job(id))?.progress !== undefined, 'the progress is stored')
      return written
    })
    await untilCalm(async () => (await pond.job(id))?.state === 'done', 'it is done')
    const found = fromPython((await inPython(at, 'find', id))[0])
    assert.deepEqual([found.result, found.progress, found.attempt], [readInPython, { half: '01ff' }, 2])
    const { code, message, name } = found.error as Record<string, string>
    assert.deepEqual({ code, message, name }, { code: 'HandlerFailed', message: 'first 🌊', name: 'RangeError' })
  })

  test(`${name}: TypeScript finds how Python ended its jobs`, { skip }, async (t) => {
    const at = place()
    const pond = await open(t, at)
    const backoff = { type: 'exponential', base: '1h', factor: 1, jitter: 0 } as const
    const queue = pond.queue('q', { retry: { attempts: 2, backoff } })
    const ends = ['done', 'dead', 'retry', 'cancelled'] as const
    const ids = await Promise.all(ends.map(async (end) => (await queue.push({ end }, { key: end })).id))
    await inPython(at, 'run', 'q')
    const [done, dead, retry, cancelled] = (await Promise.all(ids.map((id) => pond.job(id)))) as JobInfo[]
    assert.ok(done && dead && retry && cancelled)
    assert.deepEqual(
      [done, dead, retry, cancelled].map(({ state }) => state),
      ['done', 'dead', 'scheduled', 'cancelled'],
    )
    assert.deepEqual(done.result, written)
    assert.deepEqual(done.progress, { half: new Uint8Array([7]) })
    assert.equal(done.worker, 'python')
    for (const { error } of [dead, retry]) {
      assert.deepEqual([error?.code, error?.message], ['HandlerFailed', 'no address 🌊'])
      assert.match(error?.stack ?? '', /at mail/)
    }
    const wait = retry.dueAt.getTime() - (retry.startedAt?.getTime() ?? 0)
    assert.ok(wait >= 3_600_000, `the queue's backoff counts: ${wait}`)
    // Their keys are free again, except that of the job that is to be tried again.
    const again = await Promise.all(ends.map((end) => queue.push({ end }, { key: end })))
    assert.deepEqual(
      again.map(({ existing }) => existing),
      [false, false, true, false],
    )
  })
}
