/** Steps of handlers: contract/steps.md. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MillpondError } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { inState, onEachStore, refused } from './suite.ts'

onEachStore('steps', {
  'run once, whatever attempt asks for them': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q', { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } })
    pond.on('failed', () => {})
    const ran: string[] = []
    queue.work(async (job, ctx) => {
      const plan = await ctx.step('plan', () => {
        ran.push('plan')
        return { of: job.data, at: new Uint8Array([1, 2]) }
      })
      for (const user of ['ada', 'bob']) await ctx.step('mail', () => void ran.push(user))
      if (job.attempt < 3) throw new Error('no')
      return plan
    })
    const { id } = await queue.push(7)
    const job = await inState(pond, id, 'done')
    assert.deepEqual(ran, ['plan', 'ada', 'bob'])
    assert.deepEqual(job.result, { of: 7, at: new Uint8Array([1, 2]) })
    const { steps = [] } = (await pond.job(id)) ?? {}
    assert.deepEqual(
      steps.map(({ name, kind, state, attempt }) => [name, kind, state, attempt]),
      ['plan', 'mail', 'mail#2'].map((name) => [name, 'step', 'done', 1]),
    )
  },

  'that fail run again with the next attempt; a failure that was caught is kept with what comes next': async ({
    open,
  }) => {
    const pond = await open()
    const queue = pond.queue('q', { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } })
    pond.on('failed', () => {})
    const ran: string[] = []
    queue.work(async (job, ctx) => {
      const caught = await ctx
        .step('try', () => {
          ran.push('try')
          throw new RangeError('never')
        })
        .catch((error: Error) => `${error.name}: ${error.message}`)
      await ctx.step('other', () => void ran.push('other'))
      await ctx.step('fails', () => {
        ran.push(`fails ${job.attempt}`)
        if (job.attempt === 1) throw new Error('once')
      })
      return caught
    })
    const { id } = await queue.push(1)
    const { result } = await inState(pond, id, 'done')
    assert.equal(result, 'RangeError: never')
    assert.deepEqual(ran, ['try', 'other', 'fails 1', 'fails 2'])
    const { steps = [] } = (await pond.job(id)) ?? {}
    assert.deepEqual(
      steps.map(({ name, state, error }) => [name, state, error?.message]),
      [
        ['try', 'failed', 'never'],
        ['other', 'done', undefined],
        ['fails', 'done', undefined],
      ],
    )
  },

  'retry within the attempt, and have a timeout': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    let calls = 0
    queue.work(async (_, ctx) => {
      const result = await ctx.step(
        'flaky',
        () => {
          if (++calls < 3) throw new Error('again')
          return calls
        },
        { retry: { attempts: 3, backoff: { type: 'fixed', base: 1 } } },
      )
      const late = await ctx
        .step('slow', (signal) => sleep(60_000, undefined, { signal }), { timeout: 20 })
        .catch((error: MillpondError) => error.code)
      return [result, late]
    })
    const { id } = await queue.push(1)
    assert.deepEqual((await inState(pond, id, 'done')).result, [3, 'TimedOut'])
  },

  'park for a sleep: no slot, no attempt': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    const ran: string[] = []
    queue.work(
      async (job, ctx) => {
        await ctx.step('before', () => void ran.push(`before ${job.data}`))
        if (job.data === 'sleeps') await ctx.sleep('nap', '1500ms')
        await ctx.sleep('short', 5)
        ran.push(`after ${job.data} ${job.attempt}`)
      },
      { concurrency: 1 },
    )
    const { id } = await queue.push('sleeps')
    const parked = await inState(pond, id, 'scheduled')
    assert.deepEqual([parked.attempt, parked.waits?.map(({ kind, name }) => [kind, name])], [0, [['sleep', 'nap']]])
    assert.match((await pond.explain(id))?.text ?? '', /it sleeps \(nap\) until /)
    const other = await queue.push('other')
    await inState(pond, other.id, 'done')
    await inState(pond, id, 'done')
    assert.deepEqual(ran, ['before sleeps', 'before other', 'after other 1', 'after sleeps 1'])
  },

  'wait for signals: before, while and after they park, each taken once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q')
    queue.work(async (_, ctx) => {
      const first = await ctx.waitFor('go')
      const [second, third] = await Promise.all([ctx.waitFor('go'), ctx.waitFor('go')])
      const other = await ctx.waitFor('other', { timeout: 20 }).catch((error: MillpondError) => error.code)
      return [first, second, third, other]
    })
    const early = await queue.push(1, { delay: '1h', key: 'k' })
    await pond.signal(early.id, 'go', 1)
    await queue.update(early.id, { delay: 0 })
    await until(async () => (await pond.job(early.id))?.waits !== undefined)
    await pond.signal({ queue: 'q', key: 'k' }, 'go', { two: 2 })
    await pond.signal(early.id, 'go')
    assert.deepEqual(
      (await inState(pond, early.id, 'done')).result,
      [1, { two: 2 }, undefined, 'SignalTimeout'].map((one) => one ?? null),
    )
    await refused(pond.signal(early.id, 'go'), 'JobEnded')
    await refused(pond.signal('019b76da-a800-7000-8000-000000000000', 'go'), 'JobUnknown')
    await refused(pond.signal(early.id, 'go#2'), 'InvalidOption')
  },

  'run children, and park until all have ended': async ({ open }) => {
    const pond = await open()
    pond.on('dead', () => {})
    const parents = pond.queue('parents', { retry: { attempts: 1 } })
    const children = pond.queue<number>('children', { retry: { attempts: 1 } })
    const runs = new Map<number, number>()
    children.work((job) => {
      runs.set(job.data, (runs.get(job.data) ?? 0) + 1)
      if (job.data === 3) throw new Error('three')
      return job.data * 10
    })
    parents.work(
      async (_, ctx) => {
        const results = await Promise.all([1, 2].map((n) => ctx.run<number, number>(`child ${n}`, children, n)))
        const failed = await ctx.run('child 3', children, 3).catch((error: MillpondError) => error.code)
        return [...results, failed, ctx.once('pay')]
      },
      { concurrency: 1 },
    )
    const ids = await Promise.all([1, 2].map(() => parents.push(1)))
    for (const { id } of ids) {
      assert.deepEqual((await inState(pond, id, 'done')).result, [10, 20, 'JobFailed', `${id}/pay`])
    }
    assert.deepEqual(Object.fromEntries(runs), { 1: 2, 2: 2, 3: 2 })
  },

  'fail where the handler nests steps, or changed what a name means': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    pond.on('dead', () => {})
    let kind = 'step'
    queue.work(async (job, ctx) => {
      if (job.data === 'nests') await ctx.step('outer', () => ctx.step('inner', () => 1))
      if (job.data === 'changes') {
        await (kind === 'step' ? ctx.step('a', () => 1) : ctx.sleep('a', '1h'))
        throw new Error('no')
      }
    })
    const codeOf = async (data: string) => {
      const { id } = await queue.push(data)
      return [(await inState(pond, id, 'dead')).error?.code, id] as const
    }
    assert.equal((await codeOf('nests'))[0], 'InvalidOption')
    const [, id] = await codeOf('changes')
    kind = 'sleep'
    await queue.requeue([id])
    await until(async () => (await pond.job(id))?.error?.code === 'StepMismatch')
    await inState(pond, id, 'dead')
    assert.equal(await queue.requeue([id], { from: 'a' }), 1)
    await inState(pond, id, 'scheduled')
    await pond.cancel(id)
    await refused(queue.requeue([id], { from: 'none' }), 'InvalidOption')
  },

  'commit what they write together with their record, or not at all': async ({ open, transactions }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } })
    pond.on('failed', () => {})
    pond.on('dead', () => {})
    let fails = true
    const table = `effects_${Date.now()}`
    queue.work(async (job, ctx) => {
      const rows = await ctx.step(
        'write',
        async (tx) => {
          await tx(`create table if not exists ${table} (what text)`)
          await tx(`insert into ${table} (what) values ('one')`)
          if (job.attempt === 1 && fails) throw new Error('rolled back')
          return (await tx(`select count(*) as n from ${table}`)).map(({ n }) => Number(n))
        },
        { transaction: true },
      )
      if (job.attempt === 2) throw new Error('again')
      return rows
    })
    const { id } = await queue.push('x')
    if (!transactions) {
      assert.equal((await inState(pond, id, 'dead')).error?.code, 'NotSupported')
      return
    }
    assert.deepEqual((await inState(pond, id, 'done')).result, [1])
    fails = false
    // The table is that of the first job.
    const next = await queue.push('y')
    await until(async () => (await pond.job(next.id))?.steps?.[0]?.state === 'done')
    assert.deepEqual((await pond.job(next.id))?.steps?.[0]?.result, [2])
  },

  'abort the signal of a parked attempt, and are refused where too much is kept': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    pond.on('dead', () => {})
    const reasons: string[] = []
    queue.work(async (job, ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push((ctx.signal.reason as MillpondError).code))
      if (job.data === 'parks') await ctx.waitFor('go')
      const large = 'x'.repeat(1_000_000)
      for (let n = 0; job.data === 'large' && n < 20; n++) await ctx.step('large', () => large)
    })
    const { id } = await queue.push('parks')
    await inState(pond, id, 'scheduled')
    await until(() => reasons.length > 0)
    assert.deepEqual(reasons, ['JobParked'])
    const large = await queue.push('large')
    assert.equal((await inState(pond, large.id, 'dead')).error?.code, 'StepsTooLarge')
  },

  'are refused in batches': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q', { retry: { attempts: 1 } })
    pond.on('dead', () => {})
    queue.work(async (jobs, ctx) => Promise.all(jobs.map((job) => ctx.of(job).step('a', () => 1))), {
      batch: { max: 2 },
    })
    const { id } = await queue.push(1)
    assert.equal((await inState(pond, id, 'dead')).error?.code, 'InvalidOption')
  },
})
