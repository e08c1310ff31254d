/** `ctx.log`: what handlers log is kept with the job. */
import assert from 'node:assert/strict'
import type { JobInfo } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { gate, inState, numbers, onEachStore } from './suite.ts'

/** Milliseconds: more than a round trip takes on a busy machine. */
const MOMENT = 1000

const messages = (job: JobInfo | undefined): string[] => job?.log.map(({ message }) => message) ?? []

onEachStore('the log of a job', {
  'comes with its end, over all attempts': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q', { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } })
    pond.on('failed', () => {})
    queue.work((job, ctx) => {
      ctx.log(`attempt ${job.attempt}`, { of: job.attempts, error: new Error('none') })
      if (job.attempt === 1) throw new Error('not yet')
      if (job.attempt === 2) return ctx.retry(0)
      return 'done'
    })
    const { id } = await queue.push(1)
    const job = await inState(pond, id, 'done')
    assert.deepEqual(messages(job), ['attempt 1', 'attempt 2', 'attempt 3'])
    assert.deepEqual(
      job.log.map(({ attempt, fields, cut }) => ({ attempt, fields, cut })),
      [1, 2, 3].map((attempt) => ({ attempt, fields: { of: 3, error: 'Error: none' }, cut: false })),
    )
    // The worker knows the store's clock only to within the time of a round trip.
    for (const { at } of job.log) assert.ok(at !== null && at.getTime() > job.pushedAt.getTime() - MOMENT)
    const [listed] = await queue.jobs('done')
    assert.deepEqual(listed?.log, job.log)
  },

  'is seen while the handler runs, and after a death': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q', { retry: { attempts: 1 } })
    const goOn = gate()
    pond.on('dead', () => {})
    queue.work(async (_, ctx) => {
      ctx.log('first')
      await goOn.opened
      ctx.log('second')
      throw new Error('no')
    })
    const { id } = await queue.push(1)
    await until(async () => messages(await pond.job(id)).length === 1)
    goOn.open()
    assert.deepEqual(messages(await inState(pond, id, 'dead')), ['first', 'second'])
  },

  'keeps the last 100 lines, and a handler may log whatever it likes': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    queue.work((_, ctx) => {
      for (const n of numbers(1000)) ctx.log('same', { n, text: '\0\ud83d"\\\n' })
      ctx.log('m'.repeat(10_000), { large: 'x'.repeat(1_000_000) })
    })
    const { id } = await queue.push(1)
    const { log } = await inState(pond, id, 'done')
    assert.equal(log.length, 100)
    assert.deepEqual(log[98]?.fields, { n: numbers(1000).at(-1), text: '\0\ufffd"\\\n' })
    assert.deepEqual([log[99]?.message.length, log[99]?.fields, log[99]?.cut], [2001, undefined, true])
  },

  'of the jobs of a batch': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    queue.work(
      async (jobs, ctx) => {
        for (const job of jobs) ctx.of(job).log(`job ${job.data}`)
      },
      { batch: { max: 10 } },
    )
    const pushed = await queue.pushMany(numbers(3))
    for (const [at, { id }] of pushed.entries()) {
      assert.deepEqual(messages(await inState(pond, id, 'done')), [`job ${numbers(3)[at]}`])
    }
  },

  'commits with a transaction': async ({ open, transactions }) => {
    if (!transactions) return
    const pond = await open()
    const queue = pond.queue('q')
    queue.work(
      async (_, ctx) => {
        await ctx.tx('select 1')
        ctx.log('written')
      },
      { transaction: true },
    )
    const { id } = await queue.push(1)
    assert.deepEqual(messages(await inState(pond, id, 'done')), ['written'])
  },
})
