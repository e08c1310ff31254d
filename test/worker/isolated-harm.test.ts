/** What a handler may do to its process fails its own job, with a code that says why; nothing else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode, IsolateOptions } from '../../src/index.ts'
import { atWork, inState } from '../api/suite.ts'
import { isolated, moduleOf } from './fixture.ts'
import type { Told } from './modules/told.ts'

const MEMORY = { memory: '192MB' }
const CPU = { cpu: '300ms' }

const HARMS: readonly [IsolateOptions, Told, ErrorCode, RegExp][] = [
  [MEMORY, { do: 'heap' }, 'MemoryExceeded', /more memory than 192 MB, the limit of isolate\.memory/],
  [MEMORY, { do: 'largeArray' }, 'MemoryExceeded', /more memory than 192 MB/],
  [MEMORY, { do: 'buffers' }, 'MemoryExceeded', /more memory than 192 MB/],
  [CPU, { do: 'spin' }, 'CpuExceeded', /more than 300 ms of CPU time, the limit of isolate\.cpu/],
  [CPU, { do: 'spinLater' }, 'CpuExceeded', /more than 300 ms/],
  [MEMORY, { do: 'exit', value: 0 }, 'HandlerCrashed', /ended with exit code 0 before the handler had answered/],
  [CPU, { do: 'exit', value: 7 }, 'HandlerCrashed', /exit code 7/],
  [MEMORY, { do: 'abort' }, 'HandlerCrashed', /by SIGABRT/],
  [CPU, { do: 'segfault' }, 'HandlerCrashed', /by SIGSEGV/],
  [MEMORY, { do: 'kill' }, 'HandlerCrashed', /by SIGKILL/],
  [CPU, { do: 'uncaught' }, 'HandlerCrashed', /exit code 1/],
  [MEMORY, { do: 'rejection' }, 'HandlerCrashed', /exit code 1/],
]

test('harm fails its job alone; leases and other jobs go on', { timeout: 120_000 }, async (t) => {
  const { pond, ...workers } = await isolated(t, { isolate: MEMORY })
  const ofCpu = await isolated(t, { isolate: CPU })
  // Shorter than all that follows.
  const held = pond.queue<Told>('held', { lease: '1s', retry: { attempts: 1 } })
  const events: string[] = []
  for (const name of ['stale', 'lost', 'error'] as const) pond.on(name, () => events.push(name))
  const holder = held.work(moduleOf('told'), { isolate: {}, concurrency: 1 })
  const { id } = await held.push({ do: 'wait' })
  await atWork(holder)

  for (const [limits, told, code, message] of HARMS) {
    await t.test(`${told.do} ${told.value ?? ''}: ${code}, and the next job is done`, async () => {
      const { failure, run } = limits === CPU ? ofCpu : workers
      const error = await failure(told)
      assert.equal(error.code, code, error.message)
      assert.match(error.message, message)
      assert.equal(await run({ do: 'echo', value: 'next' }), 'next')
    })
  }

  const { state, attempt } = (await pond.job(id)) ?? {}
  assert.deepEqual([state, attempt, events], ['running', 1, []])
  await pond.cancel(id)
  await inState(pond, id, 'cancelled')
})

test('a result over 16 MiB, the most that a store keeps, makes its own job dead', { timeout: 60_000 }, async (t) => {
  const { pond, queue } = await isolated(t, { concurrency: 4 }, { maxPayload: 16 * 1024 ** 2 })
  const errors: unknown[] = []
  pond.on('error', (error) => errors.push(error))
  const told = (n: number): Told => (n % 5 === 2 ? { do: 'tooLarge', value: 17 } : { do: 'echo', value: n })
  const pushed = await queue.pushMany(
    Array.from({ length: 15 }, (_, n) => told(n)),
    { attempts: 3 },
  )
  for (const [n, { id }] of pushed.entries()) {
    if (n % 5 !== 2) {
      assert.equal(await pond.result(id), n)
      continue
    }
    const { attempt, error } = await inState(pond, id, 'dead')
    assert.deepEqual([attempt, error?.code], [1, 'PayloadTooLarge'])
  }
  assert.deepEqual(errors, [])
})

test('a job that is tried again runs in a fresh process', { timeout: 60_000 }, async (t) => {
  const { pond, queue, run } = await isolated(t)
  pond.queue('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
  const before = await run({ do: 'pid' })
  const { id } = await queue.push({ do: 'exit', value: 1 }, { attempts: 2 })
  const { attempt, error } = await inState(pond, id, 'dead')
  assert.deepEqual([attempt, error?.code], [2, 'HandlerCrashed'])
  assert.notEqual(await run({ do: 'pid' }), before)
})

test('CPU time counts by call: short calls add up to nothing, and waiting takes none', {
  timeout: 60_000,
}, async (t) => {
  const { run } = await isolated(t, { isolate: CPU })
  const pids = new Set()
  for (let at = 0; at < 4; at++) pids.add(await run({ do: 'burn', value: 120 }))
  pids.add(await run({ do: 'soon', value: 400 }))
  assert.equal(pids.size, 1)
})

test('what a handler sends on the channel by itself is not taken for the word of its process', {
  timeout: 60_000,
}, async (t) => {
  const { run, pond } = await isolated(t)
  const errors: unknown[] = []
  pond.on('error', (error) => errors.push(error))
  for (const value of [1, 2, 3]) assert.equal(await run({ do: 'forge', value }), 'honest')
  assert.equal(await run({ do: 'echo', value: 'next' }), 'next')
  assert.deepEqual(errors, [])
})

test('an error that an earlier job throws late fails no other one, and its process is replaced', {
  timeout: 60_000,
}, async (t) => {
  const { run } = await isolated(t)
  for (const value of ['error', 'rejection']) {
    const first = await run({ do: 'late', value })
    assert.equal(await run({ do: 'soon', value: 300 }), first, `${value}: the process goes on with its call`)
    assert.notEqual(await run({ do: 'pid' }), first, `${value}: it is replaced`)
  }
})
