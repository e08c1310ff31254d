/** Alerts that fire stand first on the overview, for those who may see their queue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alerts } from '../../src/alerts/index.ts'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { firstTick, startDashboard } from './fixture.ts'

test('an alert that fires needs attention', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  for (const name of ['slow', 'hidden']) {
    await pond.queue(name).push({})
    await pond.queue(name).push({})
  }
  const told = new Set<string>()
  const watching = alerts(pond, {
    rules: ['slow', 'hidden'].map((queue) => ({ name: `too many in ${queue}`, queue, when: { depth: 1 }, for: 0 })),
    notify: (alert) => void told.add(alert.queue),
    every: 100,
  })
  after(t, () => watching.close())
  await until(() => told.size === 2, 'both alerts to be told of')
  const { base } = await startDashboard(t, pond, { rights: () => ({ viewer: ['slow'] }) })
  const seen = async () => {
    const { stores } = await firstTick(base)
    return stores[0].attention.filter(({ kind }: { kind: string }) => kind === 'alert')
  }
  await until(async () => (await seen()).length > 0, 'the alert to be shown')
  assert.deepEqual(await seen(), [{ queue: 'slow', kind: 'alert', level: 'alarm', text: 'alert too many in slow' }])
})
