/** What RabbitMQ, the network and the processes do to jobs at their worst: no acknowledged push is lost. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'amqplib'
import { Millpond, type MillpondError } from '../../src/index.ts'
import { move } from '../../src/move/index.ts'
import { openMemory } from '../../src/stores/memory/index.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { startProxy } from '../servers/proxy.ts'
import { type RabbitmqServer, startRabbitmq } from '../servers/rabbitmq.ts'
import { missingReason } from '../servers/shared.ts'
import { after as atEnd } from '../support/cleaning.ts'
import { ERROR, newJob, newJobs, recordOf } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { freshPrefix } from './rabbitmq-fixture.ts'

const CHILD = fileURLToPath(new URL('./rabbitmq-child.ts', import.meta.url))
/** A process that has died may leave its last line half written. */
const LINES = /^\d+$/gm

describe('faults: rabbitmq', { skip: missingReason('rabbitmq') }, () => {
  let starting: Promise<RabbitmqServer> | undefined
  // It looks for late acknowledgements every half second, instead of every minute.
  const server = (): Promise<RabbitmqServer> => {
    starting ??= startRabbitmq({ advanced: ['{channel_tick_interval, 500}'] })
    return starting
  }
  after(async () => (await starting)?.stop())

  function child(
    t: TestContext,
    role: string,
    url: string,
    first = 0,
  ): { process: ChildProcess; numbers(): Set<number> } {
    const process_ = spawn(process.execPath, [CHILD, role, url, `${first}`], { stdio: ['ignore', 'pipe', 'inherit'] })
    atEnd(t, () => process_.kill('SIGKILL'))
    let said = ''
    process_.stdout?.on('data', (chunk) => {
      said += chunk
    })
    return { process: process_, numbers: () => new Set([...said.matchAll(LINES)].map(([line]) => Number(line))) }
  }

  /** A pond that works off the queue, and what it has handled. */
  async function worker(
    t: TestContext,
    url: string,
  ): Promise<{ pond: Millpond; handled: Set<number>; errors: MillpondError[] }> {
    const pond = await Millpond.open(url)
    atEnd(t, () => pond.close())
    const handled = new Set<number>()
    const errors: MillpondError[] = []
    pond.on('error', (error) => errors.push(error))
    pond.queue<{ number: number }>('q', { retry: { attempts: 1000 } }).work(
      async ({ data }) => {
        handled.add(data.number)
      },
      { concurrency: 20 },
    )
    return { pond, handled, errors }
  }

  const missing = (pushed: ReadonlySet<number>, handled: ReadonlySet<number>): number[] =>
    [...pushed].filter((number) => !handled.has(number))

  test('kill -9 of producers and workers', async (t) => {
    const url = `${(await server()).url}?prefix=${freshPrefix()}`
    const producers = [child(t, 'produce', url), child(t, 'produce', url, 1_000_000)]
    const workers = [child(t, 'work', url), child(t, 'work', url)]
    for (const each of [...producers, ...workers]) await until(() => each.numbers().size >= 100, 'the child works')
    for (const each of [workers[0], producers[0]]) each?.process.kill('SIGKILL')
    const before = workers[1]?.numbers().size ?? 0
    await until(() => (workers[1]?.numbers().size ?? 0) > before + 100, 'the other worker goes on')
    for (const each of [...workers, ...producers]) each.process.kill('SIGKILL')
    const { handled } = await worker(t, url)
    const pushed = new Set(producers.flatMap((each) => [...each.numbers()]))
    const all = () => new Set([...handled, ...workers.flatMap((each) => [...each.numbers()])])
    await until(() => missing(pushed, all()).length === 0, 'every acknowledged job is handled')
  })

  /** Pushes and works over a connection that is harmed; then every acknowledged job is handled. */
  async function underLoad(
    t: TestContext,
    url: string,
    harm: (more: () => Promise<void>) => Promise<void>,
  ): Promise<MillpondError[]> {
    const { pond, handled, errors } = await worker(t, url)
    const queue = pond.queue<{ number: number }>('q')
    const pushed = new Set<number>()
    const refused: unknown[] = []
    let isOver = false
    const pushing = (async () => {
      for (let number = 0; !isOver; number += 10) {
        const numbers = Array.from({ length: 10 }, (_, index) => number + index)
        const pushes = numbers.map((each) => queue.push({ number: each }).then(() => pushed.add(each)))
        const failures = (await Promise.allSettled(pushes)).filter((push) => push.status === 'rejected')
        refused.push(...failures.map(({ reason }) => reason))
        // As a producer should: a pause before the next one.
        if (failures.length > 0) await sleep(50)
      }
    })()
    const more = async (): Promise<void> => {
      const before = pushed.size
      await until(() => pushed.size >= before + 200, 'jobs flow')
    }
    await more()
    await harm(more)
    await more()
    isOver = true
    await pushing
    await until(() => missing(pushed, handled).length === 0, 'every acknowledged job is handled')
    for (const error of refused) assert.ok(isMillpondError(error, 'StoreUnavailable'), String(error))
    return errors
  }

  test('cut connections', async (t) => {
    const { port } = await server()
    const proxy = await startProxy(port)
    atEnd(t, () => proxy.stop())
    const errors = await underLoad(t, `amqp://127.0.0.1:${proxy.port}?prefix=${freshPrefix()}`, async (more) => {
      for (let times = 0; times < 3; times++) {
        proxy.cut()
        await more()
      }
    })
    assert.ok(
      errors.every(({ code }) => ['StoreUnavailable', 'LeaseLost', 'StaleAttempt'].includes(code)),
      String(errors[0]),
    )
  })

  test('a job whose processes are lost is dead in the end; the last attempt may be lost once', async (t) => {
    const proxy = await startProxy((await server()).port)
    atEnd(t, () => proxy.stop())
    const store = await open(`amqp://127.0.0.1:${proxy.port}`, { prefix: freshPrefix() })
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: [newJob({ attempts: 2 })] })
    const attempts: number[] = []
    const claim = async (): Promise<boolean> => {
      const request = { queue: 'q', worker: 'w', limit: 1, lease: null }
      const { jobs } = await store.operations.claim(request).catch(() => ({ jobs: [] }))
      attempts.push(...jobs.map(({ attempt }) => attempt))
      return jobs.length === 1
    }
    for (let times = 0; times < 3; times++) {
      await until(claim, 'the job is claimed')
      proxy.cut()
    }
    assert.deepEqual(attempts, [1, 2, 2])
    await until(async () => {
      assert.ok(!(await claim()))
      const { lost } = await store.operations.sweep({ limit: 10 })
      return lost.some(({ state }) => state === 'dead')
    }, 'the job is dead')
    assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.counts.dead, 1)
  })

  test('what is on its way to a consumer that ends counts no attempt', async (t) => {
    const broker = await server()
    const store = await open(`${broker.url}?prefix=${freshPrefix()}`, {})
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: newJobs(20) })
    const claim = async () => (await store.operations.claim({ queue: 'q', worker: 'w', limit: 10, lease: null })).jobs
    const items = (await claim()).map(({ id, fence }) => ({ id, fence, result: null }))
    // RabbitMQ reads the acknowledgements, and sends the other jobs only when they are on its disk.
    await broker.call('sys', 'suspend', 'ra_log_wal')
    await store.operations.complete({ queue: 'q', items })
    // This call takes longer than consumers wait for a claim.
    await broker.call('sys', 'resume', 'ra_log_wal')
    const attempts: number[] = []
    await until(async () => {
      attempts.push(...(await claim()).map(({ attempt }) => attempt))
      return attempts.length >= 10
    }, 'the other jobs are claimed')
    assert.deepEqual(attempts, Array(10).fill(1))
  })

  test('a restart of the broker', async (t) => {
    const broker = await server()
    await underLoad(t, `${broker.url}?prefix=${freshPrefix()}`, () => broker.restart())
  })

  test('a crash of the broker', async (t) => {
    const broker = await server()
    await underLoad(t, `${broker.url}?prefix=${freshPrefix()}`, async () => {
      // RabbitMQ writes the names of new queues after some seconds. A queue that is younger does not come back: docs/rabbitmq.md.
      const tables = await broker.call('dets', 'all')
      for (const [name] of tables.matchAll(/\w+/g)) await broker.call('dets', 'sync', name)
      await broker.kill('SIGKILL')
      await broker.restart()
    })
  })

  test('a handler beyond the consumer time-out: the worker hears why, and the job runs again', async (t) => {
    const broker = await server()
    const url = `${broker.url}?prefix=${freshPrefix()}`
    await broker.call('application', 'set_env', 'rabbit', 'consumer_timeout', '1000')
    atEnd(t, () => broker.call('application', 'set_env', 'rabbit', 'consumer_timeout', '1800000'))
    const pond = await Millpond.open(url)
    atEnd(t, () => pond.close({ timeout: 0 }))
    const errors: MillpondError[] = []
    pond.on('error', (error) => errors.push(error))
    const queue = pond.queue('slow')
    const attempts: number[] = []
    queue.work(async ({ attempt }, { signal }) => {
      attempts.push(attempt)
      if (attempt === 1) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    await queue.push({})
    await until(() => attempts.length === 2, 'the job runs again')
    assert.deepEqual(attempts, [1, 2])
    const told = errors.find(({ code }) => code === 'LeaseLost')
    assert.match(String(told?.message), /consumer_timeout/)
  })

  test('a memory alarm: pushes are refused, jobs that run still end', async (t) => {
    const broker = await server()
    const limitMemory = (share: string) => broker.call('vm_memory_monitor', 'set_vm_memory_high_watermark', share)
    const store = await open(`${broker.url}?prefix=${freshPrefix()}`, { timeout: 1000 })
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: [newJob(), newJob()] })
    const { jobs } = await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: null })
    await limitMemory('1.0e-5')
    atEnd(t, () => limitMemory('0.4'))
    const first = await refusal(store.operations.push({ jobs: [newJob()] }))
    assert.equal(first.code, 'StoreUnavailable')
    assert.match(first.message, /alarm/)
    const second = await refusal(store.operations.push({ jobs: [newJob()] }))
    assert.equal(second.code, 'StoreFull')
    assert.match(second.message, /alarm.*nothing of the call was stored/)
    const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
    assert.deepEqual(await store.operations.complete({ queue: 'q', items }), ['ok'])
    await until(async () => {
      const claimed = await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: null })
      return claimed.jobs.length === 1
    }, 'the other job is claimed')
    await limitMemory('0.4')
    await until(async () => {
      const pushed = await store.operations.push({ jobs: [newJob()] }).catch(() => [])
      return pushed[0]?.status === 'pushed'
    }, 'pushes are taken again')
  })

  test('a connection that is lost during an alarm: pushes are taken again once it is over', async (t) => {
    const broker = await server()
    const proxy = await startProxy(broker.port)
    atEnd(t, () => proxy.stop())
    const limitMemory = (share: string) => broker.call('vm_memory_monitor', 'set_vm_memory_high_watermark', share)
    const store = await open(`amqp://127.0.0.1:${proxy.port}?prefix=${freshPrefix()}`, { timeout: 1000 })
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: [newJob()] })
    await limitMemory('1.0e-5')
    atEnd(t, () => limitMemory('0.4'))
    await until(async () => {
      const { code } = await refusal(store.operations.push({ jobs: [newJob()] }))
      return code === 'StoreFull'
    }, 'the alarm is known')
    proxy.cut()
    await limitMemory('0.4')
    await until(async () => {
      const pushed = await store.operations.push({ jobs: [newJob()] }).catch(() => [])
      return pushed[0]?.status === 'pushed'
    }, 'pushes are taken again')
  })

  test("an operator's limit of length refuses pushes, and drops nothing", async (t) => {
    const broker = await server()
    const prefix = freshPrefix()
    const store = await open(`${broker.url}?prefix=${prefix}`, {})
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: [newJob()] })
    const policy = ['/', prefix, `^${prefix}.jobs.q.4$`, '{"max-length": 3}'].map(
      (text) => `<<${JSON.stringify(text)}>>`,
    )
    await broker.call('rabbit_policy', 'parse_set', ...policy, '0', '<<"queues">>', '<<"test">>')
    const statuses = new Set<string>()
    await until(async () => {
      for (const { status } of await store.operations.push({ jobs: [newJob()] })) statuses.add(status)
      return statuses.has('full')
    }, 'a push is refused')
    const [stats] = await store.operations.stats({ queue: 'q' })
    assert.equal(stats?.counts.waiting, stats?.totals.pushed)
  })

  test('a job over max_message_size is refused alone, and every other one is stored once', async (t) => {
    const broker = await server()
    await broker.call('application', 'set_env', 'rabbit', 'max_message_size', '20000')
    atEnd(t, () => broker.call('application', 'set_env', 'rabbit', 'max_message_size', '134217728'))
    const store = await open(`${broker.url}?prefix=${freshPrefix()}`, {})
    atEnd(t, () => store.close())
    const sized = (size: number) => newJob({ data: { encoding: 'json', body: JSON.stringify('x'.repeat(size)) } })
    const sizes = [10, 9000, 50_000, 18_000, 10, 30_000, 100]
    const calls = [sizes, sizes].map((each) => store.operations.push({ jobs: each.map(sized) }))
    for (const outcomes of await Promise.all(calls)) {
      const statuses = outcomes.map(({ status, error }) => error?.code ?? status)
      const expected = sizes.map((size) => (size > 20_000 ? 'PayloadTooLarge' : 'pushed'))
      assert.deepEqual(statuses, expected)
    }
    const [stats] = await store.operations.stats({ queue: 'q' })
    assert.equal(stats?.counts.waiting, 10)
    const records = sizes.map((size) => recordOf({ queue: 'back', data: sized(size).data }))
    const restored = sizes.map((size) => (size > 20_000 ? 'oversized' : 'restored'))
    assert.deepEqual(await store.operations.restore({ records }), restored)
    const { store: source } = openMemory('memory:', {})
    await source.operations.restore({ records: records.map((record) => ({ ...record, queue: 'moved' })) })
    const report = await move(source, store)
    assert.deepEqual([report.moved, report.queues[0]?.left], [5, { PayloadTooLarge: 2 }])
    const leftJobs = report.queues[0]?.leftJobs.map(({ id }) => id)
    assert.deepEqual(leftJobs, [records[2]?.id, records[5]?.id])
    for (const queue of ['back', 'moved']) {
      const [there] = await store.operations.stats({ queue })
      assert.equal(there?.counts.waiting, 5)
    }
  })

  test('jobs that come back and that a limit of length refuses go back to their line', async (t) => {
    const broker = await server()
    const prefix = freshPrefix()
    const store = await open(`${broker.url}?prefix=${prefix}`, {})
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: newJobs(10) })
    const policy = ['/', prefix, `^${prefix}.jobs.q.4.again$`, '{"max-length": 1}'].map(
      (text) => `<<${JSON.stringify(text)}>>`,
    )
    await broker.call('rabbit_policy', 'parse_set', ...policy, '0', '<<"queues">>', '<<"test">>')
    const claim = async () => (await store.operations.claim({ queue: 'q', worker: 'w', limit: 10, lease: null })).jobs
    const jobs: ClaimedJob[] = []
    await until(async () => {
      jobs.push(...(await claim()))
      return jobs.length === 10
    }, 'all jobs are claimed')
    const connection = await connect(broker.url)
    atEnd(t, () => connection.close())
    const channel = await connection.createConfirmChannel()
    const isRefused = () =>
      new Promise<boolean>((resolve) => {
        channel.sendToQueue(`${prefix}.jobs.q.4.again`, Buffer.from('1'), {}, (error) => resolve(error !== null))
      })
    // The consumer that still takes jobs from there rests soon.
    await until(isRefused, 'the line is full')
    const items = jobs.map(({ id, fence }) => ({ id, fence }))
    assert.deepEqual(await store.operations.release({ queue: 'q', items }), Array(10).fill('ok'))
    const back = new Set<string>()
    await until(async () => {
      for (const { id } of await claim()) back.add(id)
      return jobs.every(({ id }) => back.has(id))
    }, 'all of them are there again')
  })

  test('a dead job that a limit of length refuses keeps its claim until there is room; the others end', async (t) => {
    const broker = await server()
    const store = await open(`${broker.url}?prefix=${freshPrefix()}-full`, {})
    atEnd(t, () => store.close())
    const fail = (jobs: readonly ClaimedJob[]) => {
      const items = jobs.map(({ id, fence }) => ({ id, fence, error: ERROR, delay: 0 }))
      return store.operations.fail({ queue: 'q', items })
    }
    const claimed = async (count: number): Promise<ClaimedJob[]> => {
      const jobs: ClaimedJob[] = []
      await until(async () => {
        const request = { queue: 'q', worker: 'w', limit: count, lease: null }
        jobs.push(...(await store.operations.claim(request)).jobs)
        return jobs.length >= count
      }, 'all are claimed')
      return jobs
    }
    const limit = (most: number) => {
      const texts = ['/', 'full', '-full.jobs.q.dead$', `{"max-length": ${most}}`]
      const args = texts.map((text) => `<<${JSON.stringify(text)}>>`)
      return broker.call('rabbit_policy', 'parse_set', ...args, '0', '<<"queues">>', '<<"test">>')
    }
    const once = { attempts: 1 }
    await store.operations.push({ jobs: [newJob(once)] })
    await fail(await claimed(1))
    await limit(1)
    let filler: ClaimedJob[] = []
    await until(async () => {
      if (filler.length === 0) {
        await store.operations.push({ jobs: [newJob(once)] })
        filler = await claimed(1)
      }
      const [outcome] = await fail(filler).catch(() => ['full'])
      if (outcome !== 'full') filler = []
      return outcome === 'full'
    }, 'the line is full')
    await store.operations.push({ jobs: [...newJobs(5, once), ...newJobs(5)] })
    const jobs = await claimed(10)
    const expected = jobs.map(({ attempts }) => (attempts === 1 ? 'full' : 'retry'))
    assert.deepEqual(await fail(jobs), expected)
    await limit(1_000_000)
    const left = [...filler, ...jobs.filter(({ attempts }) => attempts === 1)]
    await until(async () => !(await fail(left.slice(0, 1))).includes('full'), 'there is room')
    assert.deepEqual(await fail(left), ['stale', ...Array(5).fill('dead')])
  })

  test('a worker hears of new lines again after somebody deleted the queue by which it does', async (t) => {
    const broker = await server()
    const prefix = freshPrefix()
    const [store, producer] = [await open(broker.url, { prefix }), await open(broker.url, { prefix })]
    for (const each of [store, producer]) atEnd(t, () => each.close())
    const claim = async () => (await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: null })).jobs
    assert.equal((await claim()).length, 0)
    const name = `binary:match(element(4, amqqueue:get_name(Q)), <<"${prefix}.lines.">>)`
    const remove = `[rabbit_amqqueue:delete(Q, false, false, <<"t">>) || Q <- rabbit_amqqueue:list(), ${name} =/= nomatch]`
    await broker.call('lists', 'foreach', `fun(_) -> ${remove} end`, '[1]')
    await producer.operations.push({ jobs: [newJob()] })
    await until(async () => (await claim()).length === 1, 'the job is claimed')
  })

  test('a broker that is not there is named, and its password is not', async () => {
    const proxy = await startProxy(1)
    await proxy.block()
    const error = await refusal(open(`amqp://user:secret@127.0.0.1:${proxy.port}`, { timeout: 500 }))
    assert.equal(error.code, 'StoreUnavailable')
    assert.match(error.message, new RegExp(`127.0.0.1:${proxy.port}`))
    assert.doesNotMatch(error.message, /secret/)
    const refused = await refusal(open((await server()).url.replace('amqp://', 'amqp://guest:wrong@'), {}))
    assert.equal(refused.code, 'StoreUnavailable')
    assert.match(refused.message, /ACCESS[-_]REFUSED/)
  })

  test('queues that somebody deleted are made again', async (t) => {
    const { url } = await server()
    const prefix = freshPrefix()
    const store = await open(url, { prefix })
    atEnd(t, () => store.close())
    await store.operations.push({ jobs: [newJob({ delay: 1 })] })
    const connection = await connect(url)
    const channel = await connection.createChannel()
    for (const line of ['4', '4.again']) await channel.deleteQueue(`${prefix}.jobs.q.${line}`)
    await connection.close()
    const [pushed] = await store.operations.push({ jobs: [newJob()] })
    assert.equal(pushed?.status, 'pushed')
    const claimed = await store.operations.claim({ queue: 'q', worker: 'w', limit: 5, lease: null })
    assert.equal(claimed.jobs.length, 1)
  })

  test('the queue of the dead is made again, too, and no dead job is lost', async (t) => {
    const { url } = await server()
    const prefix = freshPrefix()
    const store = await open(url, { prefix })
    atEnd(t, () => store.close())
    const die = async () => {
      await store.operations.push({ jobs: [newJob()] })
      const { jobs } = await store.operations.claim({ queue: 'q', worker: 'w', limit: 1, lease: null })
      const items = jobs.map(({ id, fence }) => ({ id, fence, error: ERROR, delay: null }))
      assert.deepEqual(await store.operations.fail({ queue: 'q', items }), ['dead'])
      assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.counts.dead, 1)
    }
    await die()
    const connection = await connect(url)
    await (await connection.createChannel()).deleteQueue(`${prefix}.jobs.q.dead`)
    await connection.close()
    await die()
  })
})

async function refusal(call: Promise<unknown>): Promise<MillpondError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert.ok(isMillpondError(error), String(error))
  return error
}
