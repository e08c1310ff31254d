/** Handlers that throw where nobody listens: told once for each queue and error, on stderr, without the error's message. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Millpond, type PondEvents } from '../../src/index.ts'
import { PondEmitter } from '../../src/values/jobs/events.ts'
import { inState, numbers } from './suite.ts'

type Warning = Error & { code?: unknown }

/** The warnings of failed jobs that come while something runs. */
async function warningsDuring(run: () => unknown): Promise<Warning[]> {
  const heard: Warning[] = []
  const hear = (warning: Warning) => void (warning.code === 'HandlerFailed' && heard.push(warning))
  process.on('warning', hear)
  try {
    await run()
    // They come a tick later.
    await setImmediate()
    return heard
  } finally {
    process.off('warning', hear)
  }
}

/** Runs jobs to their end, dead or not, in a pond of its own. */
async function runJobs(
  handlers: readonly (() => unknown)[],
  { attempts = 1, listen = [] as readonly (keyof PondEvents)[], queue = 'q' } = {},
): Promise<void> {
  const pond = await Millpond.open('memory:')
  for (const name of listen) pond.on(name, () => {})
  const options = { retry: { attempts, backoff: { type: 'fixed', base: 0 } } } as const
  const work = pond.queue<number>(queue, options)
  const worker = pond.queue<number>(queue, options).work(({ data }) => handlers[data]?.())
  for (const index of handlers.keys()) {
    const { id } = await work.push(index)
    await pond.result(id).catch(() => {})
  }
  await worker.close()
  await pond.close()
}

const broken = () => {
  throw new TypeError('the text of the error')
}
const other = () => Promise.reject(Object.assign(new Error('another'), { code: 'E_OTHER' }))

describe('a handler that throws', () => {
  test('is told of, with its queue, class, code and place, and without the message', async () => {
    const warnings = await warningsDuring(() => runJobs([broken, other], { queue: 'emails' }))
    assert.equal(warnings.length, 2)
    const [first, second] = warnings.map(({ message }) => message)
    assert.match(first ?? '', /^a job of queue emails failed: TypeError at .*broken.*silent-failures\.test\.ts:\d+/)
    assert.match(second ?? '', /^a job of queue emails failed: Error \(E_OTHER\) at .*silent-failures\.test\.ts:\d+/)
    for (const message of [first, second]) {
      assert.match(message ?? '', /shown once.*'failed' and 'dead'/)
      assert.doesNotMatch(message ?? '', /the text of the error|another/)
    }
    assert.ok(warnings.every(({ name }) => name === 'MillpondWarning'))
  })

  test('is told of once for each queue and error, however often it throws', async () => {
    const warnings = await warningsDuring(async () => {
      const pond = await Millpond.open('memory:')
      const workers = ['a', 'b'].map((name) =>
        pond.queue<number>(name, { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } }).work(broken),
      )
      for (const name of ['a', 'b', 'a']) {
        const pushed = await pond.queue<number>(name).pushMany(numbers(5), { attempts: 3 })
        for (const { id } of pushed) await inState(pond, id, 'dead')
      }
      await Promise.all(workers.map((worker) => worker.close()))
      await pond.close()
    })
    const queues = warnings.map(({ message }) => /of queue (\w)/.exec(message)?.[1])
    assert.deepEqual(queues.sort(), ['a', 'b'])
  })

  test('is not told of where somebody listens to the event', async () => {
    const told = async (attempts: number, listen: readonly (keyof PondEvents)[]) =>
      (await warningsDuring(() => runJobs([broken], { attempts, listen }))).length
    assert.equal(await told(1, []), 1)
    assert.equal(await told(1, ['dead']), 0)
    assert.equal(await told(2, ['dead']), 0, 'who waits for the end has no use for the attempts before')
    assert.equal(await told(1, ['failed']), 1, 'nobody hears that it is dead')
    assert.equal(await told(2, ['failed', 'dead']), 0)
    assert.equal(await told(1, ['completed', 'error']), 1)
  })

  test('is told of when it ran too long', async () => {
    const warnings = await warningsDuring(async () => {
      const pond = await Millpond.open('memory:')
      const worker = pond.queue('q').work(() => new Promise(() => {}))
      for (const data of numbers(3)) {
        const { id } = await pond.queue('q').push(data, { timeout: 5, attempts: 1 })
        await pond.result(id).catch(() => {})
      }
      await worker.close({ timeout: 0 })
      await pond.close()
    })
    assert.equal(warnings.length, 1)
    assert.match(warnings[0]?.message ?? '', /TimedOut: job .* ran longer than its timeout of 5 ms/)
  })

  test('is not told of for what it decides: to give up, or another attempt', async () => {
    const pond = await Millpond.open('memory:')
    const warnings = await warningsDuring(async () => {
      const worker = pond.queue<string>('q').work(({ data, attempt }, ctx) => {
        if (data === 'up') return ctx.giveUp('not now')
        return attempt === 1 ? ctx.retry(0) : 'done'
      })
      for (const data of ['up', 'again']) {
        const { id } = await pond.queue<string>('q').push(data)
        await pond.result(id).catch(() => {})
      }
      await worker.close()
    })
    assert.deepEqual(warnings, [])
    await pond.close()
  })

  test('of ever new kinds fills neither the memory nor the log', async () => {
    const events = new PondEmitter()
    const warnings = await warningsDuring(() => {
      for (const index of numbers(1000)) events.failure(`q${index}`, new Error('x'), true)
    })
    assert.equal(warnings.length, 100)
    assert.match(warnings.at(-1)?.message ?? '', /no further kinds are shown/)
    assert.doesNotMatch(warnings.at(-2)?.message ?? '', /no further kinds/)
  })
})
