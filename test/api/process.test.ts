/** How a pond lives and dies with its process; each case is a process of its own. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { run } from './child.ts'
import { emptyPlaces, inState, STORES } from './suite.ts'

/** Each test starts processes, which takes time. */
const COVERED: Readonly<Record<string, string>> = {
  'redis-cluster': 'the same client in the same process as redis',
  pgbouncer: 'the same client in the same process as postgres',
}

for (const { name, shared, skip, place } of STORES) {
  describe(`process: ${name}`, { skip: skip || (COVERED[name] ?? false) }, () => {
    const url = emptyPlaces(place)

    test('ends by itself once the pond is closed', async () => {
      const child = run(
        url(),
        `const pond = await Millpond.open(url)
         const queue = pond.queue('q', { capacity: 10, whenFull: 'wait' })
         const { id } = await queue.push(20)
         queue.work((job) => job.data * 2)
         console.log(await pond.result(id))
         await queue.push(1, { delay: '1h' })
         await pond.close()
         console.log('closed')`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), '40\nclosed\n')
    })

    test('is not held by a handler that goes on after its pond was closed', async () => {
      const child = run(
        url(),
        `const pond = await Millpond.open(url)
         const queue = pond.queue('q')
         await queue.push(1, { timeout: '1h' })
         const { promise, resolve } = Promise.withResolvers()
         queue.work(() => { resolve(); return new Promise(() => {}) })
         await promise
         console.log((await pond.close({ timeout: 10 })).givenBack)`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), '1\n')
    })

    test('is held by an open worker', async () => {
      const child = run(
        url(),
        `const pond = await Millpond.open(url)
         pond.queue('q').work(() => {})
         // Long after an idle process would have ended: this timer holds nothing.
         setTimeout(async () => { console.log('held'); await pond.close() }, 1500).unref()`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), 'held\n')
    })

    test('is held by a push that waits for room, and by a result awaited', async () => {
      for (const wait of ['queue.push(2)', 'pond.result(id)']) {
        const child = run(
          url(),
          `const pond = await Millpond.open(url)
           const queue = pond.queue('q', { capacity: 1, whenFull: 'wait' })
           const { id } = await queue.push(1)
           setTimeout(async () => { console.log('held'); await pond.close() }, 1500).unref()
           await ${wait}.catch((error) => console.log(error.code))`,
        )
        assert.equal(await child.end(), 0, child.text())
        assert.equal(child.text(), 'held\nClosed\n')
      }
    })

    test('a listener that throws is an uncaught exception, and breaks nothing else', async () => {
      const child = run(
        url(),
        `const uncaught = []
         process.on('uncaughtException', (error) => uncaught.push(error.message))
         const pond = await Millpond.open(url)
         const queue = pond.queue('q', { capacity: 1 })
         for (const name of ['pushed', 'started', 'completed', 'full']) pond.on(name, () => { throw new Error(name) })
         const { id } = await queue.push(1)
         await queue.push(2).catch((error) => console.log(error.code))
         const worker = queue.work((job) => job.data + 1)
         console.log(await pond.result(id))
         await pond.close()
         console.log(uncaught.join())`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), 'QueueFull\n2\npushed,full,started,completed\n')
    })

    test('with signals: true, a signal drains the pond and then ends the process with 0', async () => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) {
        const child = run(
          url(),
          `const pond = await Millpond.open(url, { signals: true })
           const other = await Millpond.open('memory:', { signals: true })
           const queue = pond.queue('q')
           await queue.push(1)
           queue.work(async () => {
             console.log('running')
             await new Promise((resolve) => setTimeout(resolve, 300))
             console.log('finished')
           })
           pond.on('completed', () => console.log('completed'))`,
        )
        await until(() => child.text().includes('running'))
        child.process.kill(signal)
        assert.equal(await child.end(), 0)
        assert.equal(child.text(), 'running\nfinished\ncompleted\n')
      }
    })

    test('two signals within a second are one', async () => {
      const child = run(
        url(),
        `const pond = await Millpond.open(url, { signals: true })
         const queue = pond.queue('q')
         await queue.push(1)
         process.prependListener('SIGINT', () => console.log('second'))
         queue.work(async () => {
           console.log('running')
           await new Promise((resolve) => process.on('SIGINT', () => setTimeout(resolve, 100)))
           console.log('finished')
         })`,
      )
      await until(() => child.text().includes('running'))
      child.process.kill('SIGTERM')
      child.process.kill('SIGINT')
      assert.equal(await child.end(), 0)
      assert.equal(child.text(), 'running\nsecond\nfinished\n')
    })

    test('a signal brings what is to come before, for all ponds, and only then closes any', async () => {
      const child = run(
        url(),
        `const tell = async (name) => {
           console.log('before', name)
           await queue.push(name)
           await new Promise((resolve) => setTimeout(resolve, 50))
           await queue.push(name)
           console.log('after', name)
         }
         const pond = await Millpond.open(url, { signals: { before: () => tell('one'), timeout: '20s' } })
         const other = await Millpond.open('memory:', { signals: { before: () => tell('two') } })
         const queue = pond.queue('q')
         queue.work(({ data }) => console.log('did', data))
         setInterval(() => {}, 1000)
         console.log('open')`,
      )
      await until(() => child.text().includes('open'))
      child.process.kill('SIGTERM')
      assert.equal(await child.end(), 0)
      const lines = child.text().trim().split('\n')
      assert.deepEqual(
        ['before one', 'before two', 'after one', 'after two'].map(
          (line) => lines.filter((one) => one === line).length,
        ),
        [1, 1, 1, 1],
        child.text(),
      )
      assert.doesNotMatch(child.text(), /Closed/)
    })

    test('what fails before is told, the pond is closed all the same, and the exit code is 1', async () => {
      const child = run(
        url(),
        `const pond = await Millpond.open(url, { signals: { before: () => server.close() } })
         const queue = pond.queue('q')
         await queue.push(1)
         queue.work(async () => {
           console.log('running')
           await new Promise((resolve) => setTimeout(resolve, 100))
         })
         pond.on('completed', () => console.log('completed'))`,
      )
      await until(() => child.text().includes('running'))
      child.process.kill('SIGTERM')
      assert.equal(await child.end(), 1)
      assert.match(child.text(), /running\ncompleted\n.*ReferenceError: server is not defined/s)
    })

    test('without signals: true, a signal ends the process at once', async () => {
      const child = run(
        url(),
        `const pond = await Millpond.open(url)
         pond.queue('q').work(() => {})
         console.log('open')`,
      )
      await until(() => child.text().includes('open'))
      child.process.kill('SIGTERM')
      assert.equal(await child.end(), 'SIGTERM')
    })

    sharedTests(url, shared ? false : 'the store is not shared')
  })
}

function sharedTests(fresh: () => string, skip: string | false): void {
  test('several processes share the work', { skip }, async () => {
    const url = fresh()
    const pond = await Millpond.open(url)
    const queue = pond.queue<number>('q')
    const code = `const pond = await Millpond.open(url, { signals: true })
      pond.queue('q').work((job) => process.pid, { concurrency: 1 })
      console.log('open')`
    const children = [run(url, code), run(url, code)]
    try {
      await until(() => children.every((child) => child.text().includes('open')))
      const pushed = await queue.pushMany(Array.from({ length: 200 }, (_, n) => n))
      const pids = new Set(await Promise.all(pushed.map(({ id }) => pond.result(id))))
      assert.ok([...pids].every((pid) => children.some((child) => child.process.pid === pid)))
      for (const child of children) child.process.kill('SIGTERM')
      assert.deepEqual(await Promise.all(children.map((child) => child.end())), [0, 0])
      const { counts } = await queue.stats()
      assert.deepEqual([counts.done, counts.running], [200, 0])
    } finally {
      for (const child of children) child.process.kill('SIGKILL')
      await pond.close()
    }
  })

  test('a second signal ends the process without waiting', { skip }, async () => {
    const url = fresh()
    const child = run(
      url,
      `const pond = await Millpond.open(url, { signals: true })
       const queue = pond.queue('q', { lease: '1h' })
       const { id } = await queue.push(1)
       console.log(id)
       queue.work(() => new Promise((resolve) => setTimeout(resolve, 60_000)))
       pond.on('started', () => console.log('running'))`,
    )
    await until(() => child.text().includes('running'))
    child.process.kill('SIGTERM')
    const pond = await Millpond.open(url)
    try {
      await inState(pond, child.text().slice(0, 36), 'running')
      const timer = setInterval(() => child.process.kill('SIGTERM'), 50)
      assert.equal(await child.end(), 'SIGTERM')
      clearInterval(timer)
    } finally {
      await pond.close()
    }
  })
}
