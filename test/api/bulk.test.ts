/** Changes of all jobs that pass a filter. */
import assert from 'node:assert/strict'
import type { BulkProgress, Queue } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { numbers, onEachStore, refused } from './suite.ts'

/** So many dead jobs, of which every fifth died of a timeout. @returns the ids of those */
async function died(queue: Queue<number>, count: number): Promise<string[]> {
  const pushed = await queue.pushMany(numbers(count), { each: (n) => ({ attempts: 1, group: `g${n % 2}` }) })
  const worker = queue.work(
    ({ data }) => {
      throw new Error(data % 5 === 0 ? `connect TIMEOUT to host ${data}` : 'no such mailbox')
    },
    { concurrency: 100 },
  )
  await until(async () => (await queue.stats()).counts.dead === count)
  await worker.close()
  return pushed.flatMap(({ id }, at) => ((numbers(count)[at] ?? 1) % 5 === 0 ? [id] : []))
}

const total = (queue: Queue<number>, state: 'waiting' | 'scheduled' | 'dead' | 'cancelled') =>
  queue.stats().then(({ counts }) => counts[state])

onEachStore('bulk', {
  'by error text: a dry run counts and changes nothing, then exactly those wait': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const ids = await died(queue, 60)
    const filter = { state: 'dead', errorText: 'TIMEOUT' } as const
    const preview = await queue.requeueAll(filter, { dryRun: true })
    assert.deepEqual([preview.count, preview.isEstimate, preview.sample.length], [12, false, 10])
    for (const { id, error } of preview.sample) assert.ok(ids.includes(id) && error?.message.includes('TIMEOUT'))
    assert.equal(await total(queue, 'dead'), 60)
    const report = await queue.requeueAll(filter, { after: preview.from })
    assert.deepEqual(report, { looked: 60, matched: 12, changed: 12, next: undefined })
    const waiting = (await queue.jobs('waiting')).map(({ id }) => id)
    assert.deepEqual(waiting.toSorted(), ids.toSorted())
    assert.deepEqual(await queue.requeueAll(filter), { looked: 48, matched: 0, changed: 0, next: undefined })
    assert.deepEqual((await queue.requeueAll({ group: 'g1', errorCode: 'HandlerFailed' })).changed, 24)
  },

  'jobs that die again while the run goes on are not requeued a second time': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { retry: { attempts: 1 } })
    const COUNT = 2_600
    await queue.pushMany(numbers(COUNT))
    const runs = new Map<string, number>()
    const worker = queue.work(
      ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        throw new Error('TIMEOUT')
      },
      { concurrency: 200 },
    )
    await until(async () => (await queue.stats()).counts.dead === COUNT)
    const seen: BulkProgress[] = []
    const report = await queue.requeueAll({ errorText: 'TIMEOUT' }, { onProgress: (progress) => seen.push(progress) })
    assert.equal(report.changed, COUNT)
    assert.ok(seen.length >= 3, 'a step changes 1,000 jobs at most')
    assert.deepEqual(seen.at(-1), { ...report, total: seen[0]?.total })
    await until(async () => (await queue.stats()).counts.dead === COUNT)
    await worker.close()
    assert.deepEqual([...new Set(runs.values())], [2])
  },

  'a run ends at its limit or its signal, and another one goes on there': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    await died(queue, 30)
    const first = await queue.requeueAll({}, { limit: 7 })
    assert.deepEqual([first.matched, first.changed, typeof first.next], [7, 7, 'string'])
    const stop = new AbortController()
    const second = await queue.requeueAll(
      {},
      { limit: 8, ...(first.next && { after: first.next }), signal: stop.signal },
    )
    assert.equal(second.changed, 8)
    const stopped = await queue.requeueAll(
      {},
      { ...(second.next && { after: second.next }), limit: 5, signal: stop.signal, onProgress: () => stop.abort() },
    )
    assert.equal(stopped.changed, 5)
    await assert.rejects(queue.requeueAll({}, { signal: stop.signal }), { name: 'AbortError' })
    assert.equal(await total(queue, 'dead'), 10)
    const last = await queue.requeueAll({}, stopped.next === undefined ? {} : { after: stopped.next })
    assert.deepEqual([last.changed, last.next], [10, undefined])
  },

  'cancelAll: of every live state unless one is named, and not what is pushed meanwhile': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const each = (n: number) => ({ group: n % 2 ? 'odd' : 'even', ...(n < 10 && { delay: '1h' as const }) })
    await queue.pushMany(numbers(1_500), { each })
    assert.equal((await queue.cancelAll({ state: 'scheduled', group: 'odd' })).changed, 5)
    let pushed: Promise<unknown> | undefined
    const report = await queue.cancelAll(
      { group: 'even' },
      {
        onProgress: () => {
          const at = Date.now()
          pushed ??= until(() => Date.now() > at).then(() => queue.push(2, { group: 'even' }))
        },
      },
    )
    await pushed
    assert.equal(report.changed, 750)
    const left = (await queue.jobs('waiting', { limit: 1000 })).map(({ group }) => group)
    assert.equal(left.filter((group) => group === 'even').length, 1)
    assert.equal(await total(queue, 'cancelled'), 755)
    assert.equal((await queue.requeueAll({ state: 'cancelled', group: 'odd' })).changed, 5)
    let begun = 0
    const worker = queue.work(
      (_, { signal }) => {
        begun++
        return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      },
      { concurrency: 3 },
    )
    await until(() => begun === 3)
    await queue.pause()
    const running = await queue.cancelAll({ state: 'running' })
    assert.ok(running.changed >= 3)
    await worker.close()
  },

  'removeAll: a state must be named': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const [first] = await queue.pushMany(numbers(20), { each: (n) => ({ key: `k${n}` }) })
    await refused(queue.removeAll({} as never), 'InvalidOption', /name the state/)
    assert.equal((await queue.removeAll({ state: 'waiting', key: 'k0' })).changed, 1)
    assert.equal(await pond.job(first?.id ?? ''), undefined)
    assert.equal((await queue.removeAll({ state: 'waiting', pushedBefore: 1 })).changed, 0)
    assert.equal((await queue.removeAll({ state: 'dead' })).changed, 0)
    assert.equal((await queue.removeAll({ state: 'waiting', pushedFrom: 1 })).changed, 19)
    assert.equal(await total(queue, 'waiting'), 0)
  },

  'promoteAll: each once, also those that fail and are scheduled again meanwhile': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', {
      retry: { attempts: 5, backoff: { type: 'fixed', base: '2h', max: '2h', jitter: 0 } },
    })
    await queue.pushMany(numbers(1_200), { delay: '1h' })
    const runs = new Map<string, number>()
    const worker = queue.work(
      ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        throw new Error('again')
      },
      { concurrency: 100 },
    )
    assert.equal((await queue.promoteAll({}, { dryRun: 'exact' })).count, 1_200)
    assert.equal((await queue.promoteAll()).changed, 1_200)
    await until(() => runs.size === 1_200)
    await worker.close()
    assert.deepEqual([...new Set(runs.values())], [1])
  },

  'updateAll: priority and due time, no job twice': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    await queue.pushMany(numbers(1_300), { each: (n) => ({ group: n % 2 ? 'odd' : 'even' }) })
    const filter = { state: 'waiting', group: 'odd' } as const
    assert.equal((await queue.updateAll(filter, { priority: 1 })).changed, 650)
    assert.equal((await queue.updateAll(filter, { priority: 1 })).matched, 0)
    assert.equal((await queue.updateAll({ state: 'waiting' }, { priority: 0 }, { dryRun: true })).count, 1_300)
    assert.equal((await queue.updateAll({ state: 'waiting' }, { delay: '1h' })).changed, 1_300)
    assert.equal((await queue.updateAll({ state: 'scheduled' }, { delay: '2h' })).changed, 1_300)
    assert.equal((await queue.updateAll({ state: 'scheduled', group: 'even' }, { runAt: 0 })).changed, 650)
    assert.deepEqual([await total(queue, 'waiting'), await total(queue, 'scheduled')], [650, 650])
  },

  'a job whose key a live job has stays, and is told apart': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    for (let n = 0; n < 3; n++) {
      await queue.push(n, { key: 'same' })
      await queue.cancelAll({})
    }
    const report = await queue.requeueAll({ state: 'cancelled' })
    assert.deepEqual([report.matched, report.changed], [3, 1])
  },

  'text of the data': async ({ open }) => {
    const queue = (await open()).queue<unknown>('q')
    await queue.pushMany([{ to: 'ann@example.org' }, { to: 'bob@example.org' }])
    assert.equal((await queue.cancelAll({ text: 'bob@' })).changed, 1)
    assert.equal((await queue.jobs('waiting')).length, 1)
  },

  'bad input is refused, and what matches nothing changes nothing': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    const none = { looked: 0, matched: 0, changed: 0, next: undefined }
    assert.deepEqual(await queue.requeueAll({ errorText: 'x' }), none)
    assert.deepEqual(await queue.cancelAll({ key: 'none' }), none)
    const { from, ...preview } = await queue.requeueAll({}, { dryRun: true })
    assert.deepEqual(preview, { count: 0, isEstimate: false, sample: [] })
    assert.deepEqual(await queue.requeueAll({}, { after: from }), none)
    await refused(queue.requeueAll({ state: 'waiting' } as never), 'InvalidOption', /one of dead, cancelled/)
    await refused(
      queue.cancelAll({ state: 'lost' } as never),
      'InvalidOption',
      /one of blocked, scheduled, waiting, running/,
    )
    await refused(queue.requeueAll({ ids: ['a'], state: 'dead' } as never), 'InvalidOption', /"ids"; known are state/)
    await refused(queue.requeueAll(['a'] as never), 'InvalidOption', /takes an object/)
    await refused(queue.requeueAll({ errorText: '' }), 'InvalidOption', /errorText must be a text/)
    await refused(queue.requeueAll({}, { limit: 0 }), 'InvalidOption', /limit/)
    await refused(queue.requeueAll({}, { dryRun: 'yes' } as never), 'InvalidOption', /dryRun/)
    await refused(queue.requeueAll({}, { after: 'dead.1.2' }), 'InvalidOption', /after/)
    await refused(queue.requeueAll({}, { after: '5~waiting' }), 'InvalidOption', /waiting jobs; give the same filter/)
    await refused(queue.updateAll({ state: 'waiting' }, {}), 'InvalidOption', /priority, delay or runAt/)
    await refused(queue.updateAll({ state: 'waiting' }, { delay: 1, runAt: 1 }), 'InvalidOption', /not both/)
    await refused(queue.updateAll({ state: 'dead' } as never, { priority: 1 }), 'InvalidOption', /scheduled, waiting/)
  },
})
