/** What a handler may do, return and throw, and what becomes of its job. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { type Context, type Job, type Millpond, MillpondError, Outcome, type QueueOptions } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { aborted, atWork, gate, inState, numbers, onEachStore, refused } from './suite.ts'

/** Another attempt at once, so that no test waits for one. */
const AT_ONCE: QueueOptions = { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } }

/** A proxy whose every trap throws: what a hostile library might throw at us. */
const hostile = (): object =>
  new Proxy(
    {},
    {
      get: () => {
        throw new Error('get trap')
      },
      getPrototypeOf: () => {
        throw new Error('getPrototypeOf trap')
      },
      ownKeys: () => {
        throw new Error('ownKeys trap')
      },
    },
  )

/** Runs one job through the handler and gives the record of its end. */
async function end(pond: Millpond, handler: (job: Job, ctx: Context) => unknown, state: 'done' | 'dead' = 'dead') {
  const queue = pond.queue('q', AT_ONCE)
  const { id } = await queue.push('data')
  queue.work(handler, { concurrency: 1 })
  return inState(pond, id, state)
}

onEachStore('handler', {
  'its result is kept, whether it is asynchronous or not': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    queue.work((job) => (job.data === 1 ? { sync: true } : Promise.resolve({ sync: false })))
    const [a, b] = [await queue.push(1), await queue.push(2)]
    assert.deepEqual(await pond.result(a.id), { sync: true })
    assert.deepEqual(await pond.result(b.id), { sync: false })
  },

  'no result is undefined, null is null': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<null>('q')
    const results: unknown[] = [undefined, null, 0, '', false]
    queue.work(() => results.shift(), { concurrency: 1 })
    const ids = (await queue.pushMany([null, null, null, null, null])).map(({ id }) => id)
    const got = await Promise.all(ids.map((id) => pond.result(id)))
    assert.deepEqual(got, [undefined, null, 0, '', false])
  },

  'a failed attempt is tried again, the last one makes it dead': async ({ open }) => {
    const pond = await open()
    const attempts: number[] = []
    const info = await end(pond, (job) => {
      attempts.push(job.attempt)
      throw new TypeError(`attempt ${job.attempt}`)
    })
    assert.deepEqual(attempts, [1, 2, 3])
    assert.equal(info.attempt, 3)
    assert.ok(info.finishedAt)
    assert.deepEqual(
      [info.error?.code, info.error?.name, info.error?.message],
      ['HandlerFailed', 'TypeError', 'attempt 3'],
    )
    assert.match(info.error?.stack ?? '', /handler\.test/)
  },

  'a retry that works out is done': async ({ open }) => {
    const pond = await open()
    const info = await end(
      pond,
      (job) => {
        if (job.attempt === 1) throw new Error('first')
        return job.attempt
      },
      'done',
    )
    assert.deepEqual([info.attempt, info.result], [2, 2])
  },

  'the fence rises with every claim': async ({ open }) => {
    const pond = await open()
    const fences: number[] = []
    await end(pond, (job) => {
      fences.push(job.fence)
      throw new Error('again')
    })
    assert.equal(fences.length, 3)
    assert.ok(
      fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? 0)),
      inspect(fences),
    )
  },

  'a backoff function is told the attempt and the error, and says when': async ({ open }) => {
    const pond = await open()
    const asked: unknown[] = []
    const backoff = (attempt: number, error: unknown) => {
      asked.push([attempt, error instanceof Error && error.message])
      return attempt === 1 ? 0 : '1h'
    }
    const queue = pond.queue('q', { retry: { backoff } })
    const { id } = await queue.push(1)
    queue.work((job) => {
      throw new Error(`no ${job.attempt}`)
    })
    const info = await inState(pond, id, 'scheduled')
    assert.deepEqual(asked, [
      [1, 'no 1'],
      [2, 'no 2'],
    ])
    assert.equal(info.attempt, 2)
    const delay = info.dueAt.getTime() - Date.now()
    assert.ok(delay > 3_500_000 && delay <= 3_600_000, `an hour from its failure, not ${delay} ms`)
  },

  'a backoff function that fails costs the job nothing but time': async ({ open }) => {
    const pond = await open()
    const errors: MillpondError[] = []
    pond.on('error', (error) => errors.push(error))
    const faults: (() => number)[] = [
      () => -1,
      () => Number.NaN,
      () => {
        throw new Error('in backoff')
      },
      () => {
        throw hostile()
      },
      () => {
        throw Object.create(null)
      },
    ]
    for (const [index, backoff] of faults.entries()) {
      const queue = pond.queue(`q${index}`, { retry: { backoff } })
      const { id } = await queue.push(1)
      const worker = queue.work(() => {
        throw new Error('no')
      })
      await inState(pond, id, 'scheduled')
      await worker.close()
    }
    assert.deepEqual(
      errors.map(({ code }) => code),
      faults.map(() => 'InvalidOption'),
    )
  },

  'ctx.retry, returned or thrown: another attempt after that delay': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const reason = new Error('rate limited')
    queue.work((job, ctx) => {
      if (job.data === 'return') return ctx.retry('1h', 'because')
      throw ctx.retry('1h', reason)
    })
    const [a, b] = [await queue.push('return'), await queue.push('throw')]
    for (const [{ id }, message] of [
      [a, 'because'],
      [b, 'rate limited'],
    ] as const) {
      const info = await inState(pond, id, 'scheduled')
      assert.deepEqual([info.attempt, info.error?.code, info.error?.message], [1, 'HandlerFailed', message])
      const delay = info.dueAt.getTime() - Date.now()
      assert.ok(delay > 3_500_000 && delay <= 3_600_000, `${delay} ms`)
    }
  },

  'ctx.retry counts as an attempt': async ({ open }) => {
    const pond = await open()
    let runs = 0
    const info = await end(pond, (_, ctx) => {
      runs++
      return ctx.retry(0)
    })
    assert.deepEqual([runs, info.attempt, info.error?.code], [3, 3, 'HandlerFailed'])
  },

  'ctx.retry with a bad delay fails the attempt': async ({ open }) => {
    const pond = await open()
    const nonsense: object = { delay: 'soon' }
    const info = await end(pond, (_, ctx) => ctx.retry(Object.values(nonsense)[0]))
    assert.equal(info.error?.code, 'InvalidOption')
  },

  'ctx.giveUp, returned or thrown: dead at once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    let runs = 0
    queue.work((job, ctx) => {
      runs++
      if (job.data === 'return') return ctx.giveUp('no such user')
      if (job.data === 'bare') return Outcome.giveUp()
      throw ctx.giveUp(new RangeError('out of stock'))
    })
    const expected = { return: 'no such user', throw: 'out of stock', bare: 'the handler gave up' }
    for (const [data, message] of Object.entries(expected)) {
      const { id } = await queue.push(data)
      const info = await inState(pond, id, 'dead')
      assert.deepEqual([info.attempt, info.error?.code, info.error?.message], [1, 'GaveUp', message])
    }
    assert.equal(runs, 3)
  },

  'whatever is thrown, the job fails and the worker goes on': async ({ open }) => {
    const pond = await open()
    const circular: { self?: unknown } = {}
    circular.self = circular
    const broken = Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('message getter')
      },
    })
    const odd = Object.assign(new Error('odd'), { name: Symbol('name'), stack: 5 })
    const thrown: [unknown, RegExp][] = [
      [undefined, /undefined/],
      [null, /null/],
      ['a string', /a string/],
      [42, /42/],
      [5n, /5/],
      [Symbol('s'), /Symbol\(s\)/],
      [{ status: 500 }, /"status":500/],
      [Object.create(null), /./],
      [circular, /./],
      [hostile(), /./],
      [broken, /./],
      [odd, /odd|cannot be shown/],
      [() => {}, /./],
      [new Error('\0 and \uD800'), /and/],
      [new Error('x'.repeat(100_000)), /x/],
      [new MillpondError('QueueFull', 'elsewhere'), /elsewhere/],
    ]
    const queue = pond.queue<number>('q', { retry: { attempts: 1 } })
    queue.work(
      (job) => {
        throw thrown[job.data]?.[0]
      },
      { concurrency: 2 },
    )
    for (const [index, [, message]] of thrown.entries()) {
      const { id } = await queue.push(index)
      const { error } = await inState(pond, id, 'dead')
      assert.equal(error?.code, index === thrown.length - 1 ? 'QueueFull' : 'HandlerFailed')
      assert.match(error?.message ?? '', message)
      assert.ok((error?.message.length ?? 0) < 5000, 'an error is kept in part if it is huge')
    }
  },

  'a hostile thing returned fails the job and no more': async ({ open }) => {
    const pond = await open()
    const returned: unknown[] = [hostile(), { nested: hostile() }]
    const queue = pond.queue<number>('q', { retry: { attempts: 1 } })
    queue.work((job) => returned[job.data], { concurrency: 1 })
    for (const index of numbers(2)) {
      const { id } = await queue.push(index)
      await inState(pond, id, 'dead')
    }
  },

  'a result that cannot be stored makes the job dead, without another attempt': async ({ open }) => {
    const pond = await open({ maxPayload: 1000 })
    const results = { PayloadNotEncodable: { f: () => {} }, PayloadTooLarge: 'x'.repeat(1001) } as const
    const queue = pond.queue<keyof typeof results>('q', AT_ONCE)
    let runs = 0
    queue.work((job) => {
      runs++
      return results[job.data]
    })
    for (const code of ['PayloadNotEncodable', 'PayloadTooLarge'] as const) {
      const { id } = await queue.push(code)
      const info = await inState(pond, id, 'dead')
      assert.deepEqual([info.error?.code, info.attempt], [code, 1])
    }
    assert.equal(runs, 2)
  },

  'a timeout fails the attempt and aborts the signal': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', AT_ONCE)
    const reasons: unknown[] = []
    queue.work(async (_, ctx) => {
      reasons.push(await aborted(ctx.signal))
      return 'too late'
    })
    const { id } = await queue.push('slow', { timeout: 20, attempts: 2 })
    const info = await inState(pond, id, 'dead')
    assert.deepEqual([info.error?.code, info.attempt, info.result], ['TimedOut', 2, undefined])
    assert.match(info.error?.message ?? '', /20 ms/)
    await until(() => reasons.length === 2)
    for (const reason of reasons) await refused(Promise.reject(reason), 'TimedOut')
  },

  'a timeout frees the slot, and what the handler does later counts for nothing': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    const late = gate()
    queue.work((job) => (job.data === 'deaf' ? late.opened.then(() => 'late') : 'quick'), { concurrency: 1 })
    const deaf = await queue.push('deaf', { timeout: 20 })
    const quick = await queue.push('quick')
    assert.equal(await pond.result(quick.id), 'quick')
    late.open()
    const after = await queue.push('after')
    await pond.result(after.id)
    const info = await pond.job(deaf.id)
    assert.deepEqual([info?.state, info?.error?.code, info?.result], ['dead', 'TimedOut', undefined])
  },

  'a job that is quick enough is not touched by its timeout': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    let signal: AbortSignal | undefined
    queue.work((_, ctx) => {
      signal = ctx.signal
      return 'done'
    })
    // Node's timers end at 24.8 days: whatever is longer would fire at once.
    for (const timeout of ['1h', '24d'] as const) {
      const { id } = await queue.push(1, { timeout })
      assert.equal(await pond.result(id), 'done')
      assert.equal(signal?.aborted, false)
    }
  },

  'progress is seen from outside while the job runs': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { lease: '50ms' })
    const done = gate()
    queue.work(async (_, ctx) => {
      ctx.progress({ percent: 10 })
      ctx.progress({ percent: 20, thumb: new Uint8Array([7]) })
      await done.opened
    })
    const { id } = await queue.push('x')
    let progress: unknown
    await until(async () => {
      progress = (await pond.job(id))?.progress
      return progress !== undefined
    })
    assert.ok(typeof progress === 'object' && progress !== null && 'percent' in progress && 'thumb' in progress)
    assert.equal(progress.percent, 20)
    assert.ok(progress.thumb instanceof Uint8Array && progress.thumb[0] === 7)
    done.open()
    await inState(pond, id, 'done')
  },

  'progress that cannot be stored throws in the handler': async ({ open }) => {
    const pond = await open({ maxPayload: 100 })
    const codes: unknown[] = []
    await end(
      pond,
      async (_, ctx) => {
        for (const value of [Symbol('s'), 'x'.repeat(200)]) {
          await refused(
            () => ctx.progress(value),
            typeof value === 'symbol' ? 'PayloadNotEncodable' : 'PayloadTooLarge',
          )
          codes.push(value)
        }
      },
      'done',
    )
    assert.equal(codes.length, 2)
  },

  'a cancelled job aborts the signal, and its result counts for nothing': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    let reason: unknown
    const worker = queue.work(async (_, ctx) => {
      reason = await aborted(ctx.signal)
      return 'ignored'
    })
    const { id } = await queue.push('x')
    await atWork(worker)
    assert.equal(await pond.cancel(id), 'cancelled')
    await until(() => reason !== undefined)
    await refused(Promise.reject(reason), 'JobCancelled')
    const info = await pond.job(id)
    assert.deepEqual([info?.state, info?.result], ['cancelled', undefined])
  },

  'a signal asked for late is aborted already': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    const late = gate()
    let aborted: boolean | undefined
    queue.work(async (_, ctx) => {
      await late.opened
      aborted = ctx.signal.aborted
    })
    const { id } = await queue.push('x', { timeout: 10 })
    await inState(pond, id, 'dead')
    late.open()
    await until(() => aborted !== undefined)
    assert.equal(aborted, true)
  },

  'ctx.tx without transaction: true is refused': async ({ open }) => {
    const pond = await open()
    const info = await end(pond, (_, ctx) => ctx.tx('select 1'))
    assert.equal(info.error?.code, 'InvalidOption')
    assert.match(info.error?.message ?? '', /transaction: true/)
  },

  'never more handlers at once than the concurrency': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    let now = 0
    let most = 0
    let done = 0
    const worker = queue.work(
      async () => {
        most = Math.max(most, ++now)
        await new Promise(setImmediate)
        now--
        done++
      },
      { concurrency: 3 },
    )
    await queue.pushMany(numbers(300))
    await until(() => done === 300)
    assert.equal(most, 3)
    assert.deepEqual(worker.load, { running: 0, buffered: 0, slots: 3 })
  },
})
