/** Jobs that are due soon, on stores that several processes share: a process that sleeps is notified, so that its next claim tells when. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { STORES } from '../api/suite.ts'
import { claim, running } from '../conformance/suite.ts'
import { ERROR, newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const { shared } = Object.groupBy(STORES, ({ shared }) => (shared ? 'shared' : 'own'))

for (const { name, skip = false, place } of shared ?? []) {
  describe(`due soon, elsewhere: ${name}`, { skip }, () => {
    test('a push with a short delay, and a failure with a short backoff', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'millpond-'))
      const { url, remove } = place(folder)
      const stores: Store[] = []
      try {
        for (const _ of [1, 2]) stores.push(await openStore(url, {}))
        const [one, other] = stores as [Store, Store]
        let heard = 0
        other.listen(({ kind }) => {
          if (kind === 'work') heard++
        })
        /** The other process sleeps, having heard all there was; then something is done, and it hears of it. */
        const hears = async (doing: () => Promise<unknown>) => {
          await until(async () => {
            const before = heard
            const { jobs } = await claim(other)
            await new Promise((resolve) => setTimeout(resolve, 50))
            return jobs.length === 0 && heard === before
          }, 'a sleeper')
          const before = heard
          await doing()
          await until(() => heard > before, 'a bell for work')
          const { jobs, retryAfter } = await claim(other)
          assert.ok(jobs.length > 0 || (retryAfter !== null && retryAfter < 1000), `${retryAfter}`)
        }
        await one.operations.configure({ queue: 'q', backoff: { base: 500, factor: 1, max: 500, jitter: 0 } })
        const held = [await running(one), await running(one), await running(one)] as const
        await hears(() => one.operations.push({ jobs: [newJob({ delay: 900 })] }))
        await hears(() => one.operations.push({ jobs: [newJob({ delay: 900, key: 'k' })] }))
        await hears(() => one.operations.fail({ queue: 'q', items: [{ ...held[0], error: ERROR, delay: 900 }] }))
        await hears(() => one.operations.fail({ queue: 'q', items: [{ ...held[1], error: ERROR, delay: 'backoff' }] }))
        await one.operations.configure({ queue: 'q', backoff: { base: 0, factor: 1, max: 0, jitter: 0 } })
        await hears(() => one.operations.fail({ queue: 'q', items: [{ ...held[2], error: ERROR, delay: 'backoff' }] }))
      } finally {
        await Promise.all(stores.map((store) => store.close()))
        await remove?.()
        await rm(folder, { recursive: true })
      }
    })
  })
}
