/** A process is to end while the server of its store is down or silent: `close` ends all the same, and says what was not told. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { startProxy } from '../servers/proxy.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { newId } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const OPTIONS = {
  redis: () => ({ prefix: `close-${newId()}` }),
  postgres: () => ({ schema: `close_${newId().replaceAll('-', '')}` }),
}

for (const name of ['redis', 'postgres'] as const) {
  describe(`${name} is away at the close`, { skip: missingReason(name) }, () => {
    for (const trouble of ['silent', 'down'] as const) {
      test(trouble, async (t) => {
        const address = new URL(serverUrl(name) ?? '')
        const proxy = await startProxy(Number(address.port))
        address.port = String(proxy.port)
        const pond = await Millpond.open(address.href, OPTIONS[name]())
        pond.on('error', () => {})
        const queue = pond.queue<number>('q')
        const gate = Promise.withResolvers<void>()
        let begun = 0
        queue.work(
          async () => {
            begun++
            await gate.promise
          },
          { concurrency: 3 },
        )
        await queue.pushMany([1, 2, 3])
        await until(() => begun === 3, 'three handlers to run')
        const push = (trouble === 'silent' ? proxy.blackhole() : proxy.stop()).then(() => queue.push(4))
        after(t, () => proxy.stop())
        let isPushOver = false
        const pushed = push
          .catch(() => {})
          .finally(() => {
            isPushOver = true
          })
        const closing = pond.close({ timeout: 500 })
        gate.resolve()
        const report = await closing
        assert.deepEqual(report, { finished: 0, givenBack: 0, untold: 3, dropped: 0 })
        if (trouble === 'silent') assert.ok(!isPushOver, 'the close has not waited for a call to give up')
        await proxy.stop()
        await pushed
      })
    }
  })
}
