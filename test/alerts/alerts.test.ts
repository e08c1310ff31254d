/** Alerts on every store: who is told, how often, and by which process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Alert, type AlertOptions, alerts } from '../../src/alerts/index.ts'
import { Millpond } from '../../src/index.ts'
import { onEachStore } from '../api/suite.ts'
import { until } from '../support/until.ts'

/** Alerts that note what they tell, with the name of the process. */
function noting(pond: Millpond, who: string, told: string[], more: Partial<AlertOptions> = {}) {
  const notify = ({ rule, queue, state, value }: Alert) => {
    told.push(`${who} ${rule} ${queue} ${state} ${value}`)
  }
  return alerts(pond, { rules: [{ name: 'deep', when: { depth: 1 }, for: 0 }], notify, every: 100, ...more })
}

onEachStore('alerts', {
  'an alert fires and resolves, each told once': async ({ open }) => {
    const pond = await open()
    const told: string[] = []
    await using _ = noting(pond, 'a', told)
    const queue = pond.queue<number>('mail')
    await queue.pushMany([1, 2, 3])
    await until(() => told.length === 1)
    queue.work(() => {})
    await until(() => told.length === 2)
    assert.deepEqual(told, ['a deep mail firing 3', 'a deep mail resolved 0'])
  },

  'every metric is read': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('mail', { retry: { attempts: 1 } })
    const metrics = [
      { oldest: 0 },
      { depth: 0 },
      { noWorker: true },
      { failures: 1 },
      { dead: 1 },
      { waitP95: 0 },
    ] as const
    const rules = metrics.map((when) => ({ name: Object.keys(when)[0] ?? '', queue: 'mail', when, for: 0 }))
    const firing = new Set<string>()
    const notify = ({ rule, state }: Alert) => {
      if (state === 'firing') firing.add(rule)
      else firing.delete(rule)
    }
    await queue.pushMany([1, 2])
    await using _ = alerts(pond, { rules, notify, every: 100 })
    await until(() => ['oldest', 'depth', 'noWorker'].every((name) => firing.has(name)))
    const worker = queue.work(() => {
      throw new Error('no')
    })
    pond.on('dead', () => {})
    await until(async () => (await queue.stats()).counts.dead === 2)
    await worker.close()
    await until(() => ['failures', 'dead', 'waitP95'].every((name) => firing.has(name)))
    await until(() => !['oldest', 'depth', 'noWorker'].some((name) => firing.has(name)))
  },

  'a function that throws is called again': async ({ open }) => {
    const pond = await open()
    pond.on('failed', () => {})
    const told: string[] = []
    const notify = ({ state }: Alert) => {
      told.push(state)
      if (told.length === 1) throw new Error('not now')
    }
    await pond.queue('mail').pushMany([1, 2])
    await using _ = noting(pond, 'a', [], { notify })
    await until(() => told.length === 2)
    assert.deepEqual(told, ['firing', 'firing'])
  },
})

onEachStore(
  'alerts of several processes',
  {
    'one of them looks; when it stops, another goes on where it was': async ({ open }) => {
      const told: string[] = []
      const ponds = [await open(), await open(), await open()]
      const looks = ponds.map(() => 0)
      const all = ponds.map((pond, index) => {
        const stats = pond.stats.bind(pond)
        pond.stats = (options) => {
          looks[index] = (looks[index] ?? 0) + 1
          return stats(options)
        }
        return noting(pond, `${index}`, told)
      })
      const [first] = ponds
      assert.ok(first)
      const queue = first.queue<number>('mail')
      await queue.pushMany([1, 2, 3])
      await until(() => told.length === 1)
      const owner = looks.findIndex((count) => count > 0)
      await until(() => (looks[owner] ?? 0) > 5)
      assert.equal(looks.filter((count) => count > 0).length, 1, `${looks}`)
      await all[owner]?.close()
      const before = looks[owner]
      await until(() => looks.filter((count, index) => index !== owner && count > 2).length === 1)
      assert.equal(looks[owner], before)
      assert.equal(told.length, 1, 'a change of the process tells nothing again')
      const worker = queue.work(() => {})
      await until(() => told.length === 2)
      assert.match(told[1] ?? '', /deep mail resolved/)
      await worker.close()
      for (const one of all) await one.close()
      assert.equal(told.length, 2)
    },
  },
  'shared',
)

test('options that are wrong, and a store that lacks what alerts need', async () => {
  await using pond = await Millpond.open('memory:')
  const rules = [{ name: 'a', when: { dead: 0 } }]
  const refused: [object, RegExp][] = [
    [{ rules }, /notify is missing/],
    [{ rules, notify: () => {}, every: 1 }, /every/],
    [{ rules, notify: { url: 'https://example.org' } }, /secret is missing/],
    [{ rules, notify: { url: 'nowhere', secret: 'whsec_x' } }, /url must be a URL/],
  ]
  for (const [options, message] of refused) assert.throws(() => alerts(pond, options as AlertOptions), message)
  const secret = `secret-${'x'.repeat(30)}`
  assert.throws(
    () => alerts(pond, { rules, notify: { url: 'https://example.org', secret } }),
    (error: Error) => /a secret is whsec_/.test(error.message) && !error.message.includes(secret),
  )
})

test('open alerts are bounded', { timeout: 60_000 }, async () => {
  await using pond = await Millpond.open('memory:')
  await Promise.all(Array.from({ length: 1010 }, (_, n) => pond.queue(`q${n}`).pushMany([1, 2])))
  let told = 0
  await using _ = noting(pond, 'a', [], { notify: () => void told++ })
  const states = async () => {
    const [right] = await pond.queue('millpond/alerts/watch').jobs('running')
    return (right?.progress as { states: unknown[] } | undefined)?.states.length ?? 0
  }
  await until(async () => (await states()) === 1000 && told === 1000)
})
