/** The application's functions run in the asynchronous context in which they were registered, whoever has caused the call. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { errorReporter } from '../../src/cache/error-reporter.ts'
import { Cache } from '../../src/cache/index.ts'
import { batch, coalesce, MillpondError } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { onEachStore } from './suite.ts'

const user = new AsyncLocalStorage<string>()
const PUSHERS = ['Bob', 'Carol', 'Dave', 'Erin']

onEachStore('the context of', {
  'handlers, listeners, schemas and backoffs is that of their registration, whoever pushes': async ({ open }) => {
    const pond = await open()
    const seen = new Map<string, Set<string | undefined>>()
    const see = (what: string) => seen.set(what, (seen.get(what) ?? new Set()).add(user.getStore()))
    const validate = (value: unknown) => {
      see('schema')
      return { value }
    }
    const schema = { '~standard': { version: 1 as const, vendor: 'test', validate } }
    const backoff = () => {
      see('backoff')
      return 0
    }
    const queue = pond.queue<string>('q', { schema, retry: { attempts: 2, backoff } })
    const unchecked = pond.queue<string>('q')
    // The worker is idle first, so that the pushes wake it.
    user.run('worker', () => {
      see('worker')
      pond.on('completed', () => see('listener'))
      queue.work(
        async ({ attempt }) => {
          see('handler')
          await new Promise(setImmediate)
          see('handler')
          if (attempt === 1) throw new Error('once more')
        },
        { concurrency: 2 },
      )
    })
    const ids = await Promise.all(PUSHERS.map((name) => user.run(name, () => unchecked.push(name))))
    await Promise.all(
      ids.map(({ id }, at) =>
        user.run(PUSHERS[at] ?? '', async () => {
          await pond.result(id)
          // A caller goes on as itself.
          assert.equal(user.getStore(), PUSHERS[at])
        }),
      ),
    )
    await until(() => seen.has('listener'))
    for (const [what, users] of seen) assert.deepEqual([...users], ['worker'], what)
  },

  'backoffs and listeners, where a handler enters another one': async ({ open }) => {
    const pond = await open()
    const seen: [what: string, user: string | undefined][] = []
    const see = (what: string) => seen.push([what, user.getStore()])
    const backoff = () => {
      see('backoff')
      return 0
    }
    const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff } })
    user.run('listener', () => pond.on('failed', () => see('failed')))
    user.run('worker', () =>
      queue.work(({ attempt }) => {
        see('handler')
        user.enterWith('handler')
        if (attempt === 1) throw new Error('once more')
      }),
    )
    const { id } = await queue.push('one')
    await pond.result(id)
    await until(() => seen.length >= 4)
    const expected = ['backoff worker', 'failed listener', 'handler worker', 'handler worker']
    assert.deepEqual(seen.map((each) => each.join(' ')).sort(), expected)
  },

  'handlers of batches, and of listeners of their signals': async ({ open }) => {
    const pond = await open()
    const seen = new Set<string | undefined>()
    const queue = pond.queue<string>('q')
    const started = Promise.withResolvers<void>()
    let aborted = 0
    user.run('worker', () => {
      queue.work(
        async (_, { signal }) => {
          seen.add(user.getStore())
          started.resolve()
          await new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => {
              seen.add(user.getStore())
              aborted++
              resolve()
            })
          })
        },
        { batch: { max: 1 } },
      )
    })
    const { id } = await user.run('Bob', () => queue.push('Bob'))
    await started.promise
    await user.run('Carol', () => pond.cancel(id))
    await until(() => aborted === 1)
    assert.deepEqual([...seen], ['worker'])
  },

  'a handler’s signal': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const started = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<string | undefined>()
    user.run('worker', () => {
      queue.work(async (_, { signal }) => {
        signal.addEventListener('abort', () => ended.resolve(user.getStore()))
        started.resolve()
        await ended.promise
      })
    })
    const { id } = await user.run('Bob', () => queue.push('Bob'))
    await started.promise
    await user.run('Carol', () => pond.cancel(id))
    assert.equal(await ended.promise, 'worker')
  },

  'a coalesced function that processes share': async ({ open }) => {
    const pond = await open()
    const call = user.run('app', () =>
      coalesce(async (_: string) => user.getStore() ?? 'nobody', { key: (name) => name, shared: pond, name: 'who' }),
    )
    const all = await Promise.all(PUSHERS.map((name) => user.run(name, () => call(name))))
    assert.deepEqual(all, ['app', 'app', 'app', 'app'])
  },
})

test('the context of onError of a cache is that of its registration', () => {
  const seen: (string | undefined)[] = []
  const report = user.run('app', () => errorReporter(() => seen.push(user.getStore())))
  user.run('Bob', () => report(new MillpondError('StoreUnavailable', 'gone'), 'key'))
  assert.deepEqual(seen, ['app'])
})

test('the context of loaders is that of their registration', async () => {
  const cache = await Cache.open('memory:')
  const { load, share, cached } = user.run('app', () => ({
    load: batch((names: string[]) => names.map(() => user.getStore())),
    share: coalesce((_: string) => user.getStore(), { key: () => 'one' }),
    cached: cache.wrap((_: string) => user.getStore() ?? 'nobody', { key: (name) => name, ttl: '1m' }),
  }))
  try {
    for (const call of [load, share, cached]) {
      const all = PUSHERS.map((name) => user.run(name, async () => [await call(name), user.getStore()]))
      assert.deepEqual(
        await Promise.all(all),
        PUSHERS.map((name) => ['app', name]),
      )
    }
  } finally {
    await cache.close()
  }
})
