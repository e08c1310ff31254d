import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { onEachStore } from './suite.ts'

const NOON = Date.UTC(2026, 2, 28, 12)
const DAY = 86_400_000

/** A pond on memory with a clock that stands still until it is moved, and what its worker has got. */
async function movable() {
  const clock = { now: NOON }
  const pond = await Millpond.open('memory:', { clock: () => clock.now })
  const queue = pond.queue<{ of: string }>('reports')
  const got: { of: string; id: string }[] = []
  queue.work(async ({ id, data }) => void got.push({ ...data, id }))
  const nextAt = async () => (await pond.schedules.list())[0]?.nextAt?.toISOString()
  const planned = () => until(async () => (await nextAt()) !== undefined)
  return { clock, pond, queue, got, nextAt, planned }
}

describe('schedules with a moved clock', () => {
  test('each time has one job, across the change of clocks, and the last one of several that were missed', async () => {
    const { clock, pond, queue, got, nextAt, planned } = await movable()
    await pond.schedule('report', '30 2 * * *', queue, { of: 'day' }, { tz: 'Europe/Paris' })
    await planned()
    assert.equal(await nextAt(), '2026-03-29T01:00:00.000Z', 'the clock shows no half past two that day')
    clock.now += DAY
    await until(() => got.length === 1)
    await until(async () => (await nextAt()) === '2026-03-30T00:30:00.000Z')
    clock.now += 5 * DAY
    await until(() => got.length === 2)
    await until(async () => (await nextAt()) === '2026-04-04T00:30:00.000Z')
    assert.deepEqual(await pond.job(got[1]?.id ?? '').then((job) => job?.pushedAt.getTime()), clock.now)
    await pond.close()
    assert.equal(got.length, 2)
  })

  test('all: each of the times that were missed', async () => {
    const { clock, pond, queue, got, planned } = await movable()
    await pond.schedule('report', 'every 24h', queue, { of: 'day' }, { missed: 'all' })
    await planned()
    clock.now += 3 * DAY
    await until(() => got.length === 3)
    await pond.close()
  })

  test('all: in a queue that has less room than times were missed', async () => {
    const { clock, pond, queue, got, nextAt, planned } = await movable()
    await queue.override({ capacity: 2 })
    await pond.schedule('report', 'every 24h', queue, { of: 'day' }, { missed: 'all' })
    await planned()
    clock.now += 5 * DAY
    await until(() => got.length === 5)
    assert.equal(new Set(got.map(({ id }) => id)).size, 5)
    await until(async () => (await nextAt()) === '2026-04-03T00:00:00.000Z')
    await pond.close()
  })

  test('a hundred that push to a full queue keep no other from firing', async () => {
    const { clock, pond, queue, got } = await movable()
    const full = pond.queue<{ of: string }>('full', { capacity: 1 })
    pond.on('error', ({ code }) => assert.equal(code, 'QueueFull'))
    await full.push({ of: 'day' })
    const names = Array.from({ length: 101 }, (_, at) => `s${1000 + at}`)
    for (const name of names) await pond.schedule(name, 'every 24h', full, { of: name })
    await pond.schedule('z', 'every 24h', queue, { of: 'z' })
    await until(async () => (await pond.schedules.list()).every(({ nextAt }) => nextAt !== null))
    clock.now += DAY
    await until(() => got.length === 1)
    assert.equal(got[0]?.of, 'z')
    await pond.close()
  })

  test('a pause misses nothing, and run pushes at once', async () => {
    const { clock, pond, queue, got, nextAt, planned } = await movable()
    await pond.schedule('report', '@daily', queue, { of: 'day' })
    await planned()
    assert.equal(await pond.schedules.pause('report'), true)
    clock.now += 3 * DAY
    assert.equal(await pond.schedules.resume('report'), true)
    await until(async () => (await nextAt()) === '2026-04-01T00:00:00.000Z')
    assert.equal(got.length, 0)
    const { id } = (await pond.schedules.run('report')) ?? {}
    await until(() => got[0]?.id === id)
    assert.deepEqual(await Promise.all([pond.schedules.run('none'), pond.schedules.pause('none')]), [undefined, false])
    await pond.close()
  })
})

onEachStore('schedules', {
  'are declared, listed, changed and removed': async (place) => {
    const pond = await place.open()
    if (!pond.store.capabilities.schedules) {
      const refused = pond.schedule('s', '@daily', pond.queue('q'), 1)
      await assert.rejects(refused, { code: 'NotSupported' })
      return
    }
    const queue = pond.queue<number>('q')
    await pond.schedule('b', '@daily', queue, 1, { tz: 'Europe/Paris', jitter: '1m', priority: 9 })
    await pond.schedule('a', 'every 90s', queue, 1, { until: 1 })
    await pond.schedule('b', '@hourly', queue, 2)
    await pond.schedule('b', '@daily', queue, 1, { tz: 'Europe/Paris', jitter: '1m', priority: 9 })
    const list = await pond.schedules.list()
    assert.deepEqual(
      list.map(({ name, when, declared }) => ({ name, when, declared })),
      [
        { name: 'a', when: 'every 90s', declared: true },
        { name: 'b', when: '@hourly', declared: true },
      ],
    )
    assert.equal(await pond.schedules.remove('a'), true)
    assert.equal(await pond.schedules.remove('a'), false)
  },

  'bad ones are refused when they are declared': async (place) => {
    const pond = await place.open()
    if (!pond.store.capabilities.schedules) return
    const queue = pond.queue<unknown>('q')
    const bad: Parameters<typeof pond.schedule>[] = [
      ['s', '0 0 30 2 *', queue, 1],
      ['s', 'every 0s', queue, 1],
      ['s', '@daily', queue, 1, { tz: 'Mars/Olympus' }],
      ['s', '@daily', queue, 1, { from: 2, until: 1 }],
      ['s', '@daily', queue, 1, { priority: 10 }],
      ['s', '@daily', 'q' as unknown as typeof queue, 1],
    ]
    for (const call of bad) await assert.rejects(pond.schedule(...call), { code: 'InvalidOption' }, call[1])
    await assert.rejects(pond.schedule('no name', '@daily', queue, 1), { code: 'InvalidName' })
    await assert.rejects(pond.schedule('s', '@daily', queue, 'x'.repeat(70_000)), { code: 'PayloadTooLarge' })
    assert.deepEqual(await pond.schedules.list(), [])
  },

  'a preview is times and words': async (place) => {
    const pond = await place.open()
    const { words, times } = await pond.schedules.preview('0 7 * * MON-FRI', { tz: 'Europe/Paris', count: 3 })
    assert.equal(words, 'At 07:00, Monday through Friday (Europe/Paris)')
    assert.equal(times.length, 3)
  },
})
