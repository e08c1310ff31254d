/** Alerts that fire stand first on the overview, for those who may see their queue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alerts } from '../../src/alerts/index.ts'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Answer, firstTick, startDashboard } from './fixture.ts'

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
  const { base, ask } = await startDashboard(t, pond, { rights: () => ({ viewer: ['slow'] }) })
  const seen = async () => {
    const { stores } = await firstTick(base)
    return stores[0].attention.filter(({ kind }: { kind: string }) => kind === 'alert')
  }
  await until(async () => (await seen()).length > 0, 'the alert to be shown')
  assert.deepEqual(await seen(), [{ queue: 'slow', kind: 'alert', level: 'alarm', text: 'alert too many in slow' }])
  // The delivery is done a little after it was made.
  const deliveries = async () =>
    (await ask('alerts')).body.told.map(({ rule, turn, state }: Answer) => [rule, turn, state])
  await until(async () => JSON.stringify(await deliveries()).includes('done'), 'the delivery to be done')
  assert.deepEqual(await deliveries(), [['too many in slow', 'firing', 'done']])
  const { body, text } = await ask('alerts')
  const [{ states, ...rule }] = body.rules
  assert.deepEqual(rule, {
    name: 'too many in slow',
    queue: 'slow',
    metric: 'depth',
    above: 1,
    for: 0,
    resolveAfter: 0,
  })
  assert.deepEqual(
    states.map(({ queue, phase }: Answer) => [queue, phase]),
    [['slow', 'firing']],
  )
  assert.equal(body.rules.length, 1)
  assert.doesNotMatch(text, /hidden/)
})

test('no rules, and progress of another shape', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const { ask } = await startDashboard(t, pond, { rights: () => ({}) })
  assert.deepEqual((await ask('alerts')).body, { rules: null, told: [] })
  const watch = pond.queue('millpond/alerts/watch')
  await watch.push(null)
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  after(t, end)
  watch.work(async (_, ctx) => {
    ctx.progress({ rules: [7, { name: 1 }, null], states: [['x'], 'y', ['a b', { phase: 1 }]] })
    await over
  })
  await pond.queue('millpond/alerts').push({ rule: 7, queue: [], state: 'firing' })
  await until(async () => (await ask('alerts')).body.rules !== null, 'the rules to be read')
  assert.deepEqual((await ask('alerts')).body, { rules: [], told: [] })
})
