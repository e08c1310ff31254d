/** Sealed payloads on every store: plain for ponds with the key, and for nobody else. */
import assert from 'node:assert/strict'
import { Millpond } from '../../src/pond/millpond.ts'
import { openStore } from '../../src/stores/open.ts'
import { Scheduler } from '../../src/worker/scheduler.ts'
import { until } from '../support/until.ts'
import { first, onEachStore, type Place, refused } from './suite.ts'

const CANARY = 'canary-4711'
const OLD = { id: 'old', key: Buffer.alloc(32, 1) }
const NEW = { id: 'new', key: Buffer.alloc(32, 2).toString('base64') }
const OTHER = { id: 'old', key: Buffer.alloc(32, 3) }

/** Two ponds on one store, where each has its own keys; on memory both are the same store too. */
async function ponds(place: Place, ...keys: (readonly (typeof OLD | typeof NEW)[] | null)[]): Promise<Millpond[]> {
  return Promise.all(keys.map((each) => place.open(each === null ? {} : { seal: { keys: each } })))
}

onEachStore('seal', {
  'every part comes back in plain, for those with the key': async ({ open }) => {
    const pond = await open({ seal: { keys: [OLD] } })
    const queue = pond.queue<{ to: string; n: bigint }>('q', {
      retry: { attempts: 2, backoff: { type: 'fixed', base: 1 } },
    })
    pond.on('failed', () => {})
    queue.work((job, ctx) => {
      ctx.progress({ at: CANARY })
      if (job.attempt === 1) throw new TypeError(CANARY)
      return { sent: job.data.to, bytes: new Uint8Array([1, 2]) }
    })
    const { id } = await queue.push({ to: CANARY, n: 2n ** 63n })
    assert.deepEqual(await pond.result(id), { sent: CANARY, bytes: new Uint8Array([1, 2]) })
    const job = await pond.job(id)
    assert.deepEqual([job?.data, job?.undecodable], [{ to: CANARY, n: 2n ** 63n }, []])
    assert.deepEqual([job?.error?.name, job?.error?.message, job?.error?.code], ['TypeError', CANARY, 'HandlerFailed'])
    const listed = first(await queue.jobs('done'))
    assert.deepEqual([listed.result, listed.error?.message], [{ sent: CANARY, bytes: new Uint8Array([1, 2]) }, CANARY])
  },

  'updates and restores are sealed too': async ({ open }) => {
    const pond = await open({ seal: { keys: [NEW, OLD] } })
    const queue = pond.queue<string>('q')
    const { id } = await queue.push('first', { delay: '1h' })
    await queue.update(id, { data: CANARY })
    assert.equal((await pond.job(id))?.data, CANARY)
    await refused(queue.jobs('scheduled', { text: CANARY }), 'NotSupported')
    await refused(queue.jobs('dead', { errorText: CANARY }), 'NotSupported')
    await refused(queue.requeueAll({ errorText: CANARY }, { dryRun: true }), 'NotSupported', /errorCode works/)
    await refused(queue.cancelAll({ text: CANARY }), 'NotSupported')
    assert.equal((await queue.requeueAll({ errorCode: 'none' })).changed, 0)
  },

  'a store without the key has nothing in plain, and a worker without it loses nothing': async (place) => {
    if (!place.shared) return
    const [pond, blind, stranger] = await ponds(place, [OLD], null, [OTHER])
    assert.ok(pond && blind && stranger)
    const retry = { attempts: 1 } as const
    const queue = pond.queue<string>('q', { retry })
    blind.on('dead', () => {})
    stranger.on('dead', () => {})
    const { id } = await queue.push(CANARY)
    for (const without of [blind, stranger]) {
      const worker = without.queue('q', { retry }).work(() => assert.fail('it gets no such job'))
      await until(async () => (await blind.job(id))?.state === 'dead')
      await worker.close()
      const job = await without.job(id)
      assert.deepEqual([job?.data, job?.undecodable, job?.error?.code], [undefined, ['data'], 'PayloadSealed'])
      await queue.requeue([id])
    }
    const store = await openStore(place.url, {})
    const records = await store.operations.find({ ids: [id] })
    await store.close()
    const text = records.map(
      (record) => Buffer.from(record?.data.body ?? '').toString('latin1') + JSON.stringify(record),
    )
    assert.ok(!text.join().includes(CANARY))
    queue.work((job) => job.data.length)
    assert.equal(await pond.result(id), CANARY.length)
  },

  'keys change while jobs wait, and plain jobs stay readable': async (place) => {
    if (!place.shared) return
    const [plain, before, during, later] = await ponds(place, null, [OLD], [NEW, OLD], [NEW])
    assert.ok(plain && before && during && later)
    const ids: string[] = []
    for (const pond of [plain, before, during]) ids.push((await pond.queue<string>('q').push(CANARY)).id)
    assert.deepEqual(await Promise.all(ids.map(async (id) => (await during.job(id))?.data)), [CANARY, CANARY, CANARY])
    assert.deepEqual(await Promise.all(ids.map(async (id) => (await later.job(id))?.data)), [CANARY, undefined, CANARY])
  },

  'a schedule is fired by a process with the key, and by no other': async (place) => {
    if (!place.shared) return
    const [pond, blind, stranger] = await ponds(place, [OLD], null, [OTHER])
    assert.ok(pond && blind && stranger)
    const queue = pond.queue<string>('q')
    await pond.schedule('daily', '@daily', queue, CANARY)
    for (const options of [{}, { seal: { keys: [OTHER] } }]) {
      const store = await openStore(place.url, options)
      const [made] = await store.operations.schedules({ limit: 1 })
      assert.ok(made?.nextAt)
      // Its time has come.
      await store.operations.fire({ firings: [{ ...made, expected: made.nextAt, next: made.nextAt, jobs: [] }] })
      const { schedules } = await store.operations.sweep({ limit: 1 })
      assert.ok(schedules?.due[0]?.planned)
      await new Scheduler(store, assert.fail).fire(schedules)
      assert.equal((await store.operations.schedules({ limit: 1 }))[0]?.lastAt, null)
      await store.close()
    }
    await refused(blind.schedules.run('daily'), 'PayloadSealed', /data of schedule daily/)
    const got: string[] = []
    queue.work(({ data }) => void got.push(data))
    await until(() => got.length === 1)
    await pond.schedules.run('daily')
    await until(() => got.length === 2)
    for (const without of [blind, stranger]) {
      await without.schedules.change('daily', { when: without === blind ? '@weekly' : '@monthly' })
    }
    await pond.schedules.run('daily')
    await until(() => got.length === 3)
    assert.deepEqual(got, [CANARY, CANARY, CANARY])
  },

  'a schedule that is declared with a new key needs the old one no more': async (place) => {
    if (!place.shared) return
    const [before, during, later] = await ponds(place, [OLD], [NEW, OLD], [NEW])
    assert.ok(before && during && later)
    for (const pond of [before, during, during]) await pond.schedule('daily', '@daily', pond.queue('q'), CANARY)
    const { id } = (await later.schedules.run('daily')) ?? assert.fail()
    assert.equal((await later.job(id))?.data, CANARY)
  },

  'pushes and results inside a transaction': async (place) => {
    if (!place.transactions) return
    const pond = await place.open({ seal: { keys: [OLD] } })
    const queue = pond.queue<string, string>('q')
    const next = pond.queue<string>('next')
    queue.work(
      async (job, ctx) => {
        await next.push(job.data, { tx: ctx.tx })
        return job.data
      },
      { transaction: true },
    )
    const { id } = await queue.push(CANARY)
    assert.equal(await pond.result(id), CANARY)
    assert.equal(first(await next.jobs('waiting')).data, CANARY)
  },

  'bad keys are refused, and not shown': async ({ url }) => {
    const bad: unknown[] = [
      {},
      { keys: [] },
      { keys: [{ id: 'a', key: CANARY }] },
      { keys: [{ id: 'a', key: Buffer.alloc(31) }] },
      { keys: [{ id: '', key: Buffer.alloc(32) }] },
      { keys: [OLD, OTHER] },
      { keys: [CANARY] },
      { keys: OLD, other: 1 },
    ]
    for (const seal of bad) {
      const open = () => Millpond.open(url, Object.fromEntries([['seal', seal]]))
      const error = await open().then(
        () => assert.fail(JSON.stringify(seal)),
        (thrown: unknown) => thrown,
      )
      assert.ok(error instanceof Error && 'code' in error && error.code === 'InvalidOption', String(error))
      assert.ok(!error.message.includes(CANARY))
    }
  },
})
