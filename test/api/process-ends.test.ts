/** An open pond or cache holds no process, on any store; what waits for an answer does. Each case is a process of its own that closes nothing. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { startProxy } from '../servers/proxy.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { removePrefix } from '../stores/redis-fixture.ts'
import { until } from '../support/until.ts'
import { run } from './child.ts'
import { emptyPlaces, STORES } from './suite.ts'

for (const { name, shared, skip, place } of STORES) {
  describe(`process ends: ${name}`, { skip: skip ?? false }, () => {
    const newUrl = emptyPlaces(place)

    test('once its pushes are settled', async () => {
      const child = run(
        newUrl(),
        `const pond = await Millpond.open(url)
         const queue = pond.queue('q', { capacity: 10, whenFull: 'wait' })
         await queue.push(1)
         await pond.queue('r').push(1, { delay: '1h' })
         console.log('idle')`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), 'idle\n')
    })

    test('not before pushes that nobody waits for are stored', async () => {
      const url = newUrl()
      const child = run(
        url,
        `const pond = await Millpond.open(url)
         const queue = pond.queue('q')
         for (let n = 0; n < 500; n++) queue.push(n).then(() => n === 499 && console.log('stored'))`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), 'stored\n')
      if (!shared) return
      const pond = await Millpond.open(url)
      try {
        assert.equal((await pond.queue('q').stats()).counts.waiting, 500)
      } finally {
        await pond.close()
      }
    })

    test('once its last worker is closed and its last result is there', async () => {
      const child = run(
        newUrl(),
        `const pond = await Millpond.open(url)
         const queue = pond.queue('q')
         const worker = queue.work((job) => job.data)
         const { id } = await queue.push(1)
         await pond.result(id)
         await worker.close()
         console.log('idle')`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), 'idle\n')
    })

    test('and one that closes an idle pond gets its report first', async () => {
      const child = run(
        newUrl(),
        `const pond = await Millpond.open(url)
         const queue = pond.queue('q')
         const worker = queue.work((job) => job.data)
         await pond.result((await queue.push(1)).id)
         await worker.close()
         await new Promise((resolve) => setTimeout(resolve, 100))
         console.log((await pond.close()).givenBack)`,
      )
      assert.equal(await child.end(), 0, child.text())
      assert.equal(child.text(), '0\n')
    })
  })
}

for (const server of ['redis', 'postgres'] as const) {
  test(`a process ends though its server is gone by then (${server})`, { skip: missingReason(server) }, async (t) => {
    const at = new URL(serverUrl(server) ?? '')
    const proxy = await startProxy(Number(at.port))
    t.after(() => proxy.stop())
    at.port = String(proxy.port)
    const child = run(
      at.href,
      `const pond = await Millpond.open(url)
       await pond.stats()
       console.log('open')
       await new Promise((resolve) => process.stdin.once('data', resolve))
       process.stdin.destroy()
       console.log('idle')`,
    )
    await until(() => child.text().includes('open'))
    await proxy.block()
    proxy.cut()
    child.process.stdin.write('go\n')
    assert.equal(await child.end(), 0, child.text())
    assert.equal(child.text(), 'open\nidle\n')
  })
}

describe('a process with an open cache ends', () => {
  async function ends(t: TestContext, url: string): Promise<void> {
    const child = run(
      url,
      `const cache = await Cache.open(url)
       const load = cache.wrap(async (n) => n * 2, { key: (n) => 'n:' + n, ttl: '1h' })
       console.log(await load(21), await cache.get('n:21'))`,
    )
    t.after(() => child.process.kill('SIGKILL'))
    assert.equal(await child.end(), 0, child.text())
    assert.equal(child.text(), '42 42\n')
  }

  test('memory', (t) => ends(t, 'memory:'))

  for (const server of ['redis', 'redis-cluster'] as const) {
    test(server, { skip: missingReason(server) }, async (t) => {
      const url = serverUrl(server) ?? ''
      const prefix = `cache-${randomUUID()}`
      t.after(() => removePrefix(url, prefix))
      await ends(t, `${url}?prefix=${prefix}`)
    })
  }
})
