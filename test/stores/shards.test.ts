/** Several stores as one pond: what crosses them is refused, one that is away harms only its queues, a move changes their number. */
import assert from 'node:assert/strict'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import { openMemory } from '../../src/stores/memory/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { openShards } from '../../src/stores/shards/index.ts'
import { shardOf } from '../../src/stores/shards/route.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { newJob } from '../support/jobs.ts'

let folder: string
let opened: { close(): Promise<unknown> }[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millpond-shards-'))
  opened = []
})
afterEach(async () => {
  for (const one of opened) await one.close()
  await rm(folder, { recursive: true, force: true })
})

const urls = (count: number, name = 'shard') =>
  Array.from({ length: count }, (_, shard) => `sqlite:${join(folder, `${name}${shard}.db`)}?sync=normal`)

async function openPond(given: string | string[]): Promise<Millpond> {
  const pond = await Millpond.open(given)
  opened.push(pond)
  return pond
}

/** A name of a queue that is in the shard. */
const inShard = (shard: number, count: number): string => {
  for (let n = 0; ; n++) if (shardOf(`queue${n}`, count) === shard) return `queue${n}`
}

describe('shards of a pond', () => {
  test('queues are spread, lists and figures are merged, ids are found wherever they are', async () => {
    const pond = await openPond(urls(3).join(','))
    const names = [0, 1, 2].map((shard) => inShard(shard, 3))
    const ids: string[] = []
    for (const name of names) ids.push((await pond.queue(name).push({ name })).id)
    assert.deepEqual((await pond.stats()).map(({ queue }) => queue).sort(), [...names].sort())
    for (const [at, id] of ids.entries()) assert.equal((await pond.job(id))?.queue, names[at])
    for (const [shard, url] of urls(3).entries()) {
      const alone = await openPond(url)
      assert.deepEqual(
        (await alone.stats()).map(({ queue }) => queue),
        [names[shard]],
      )
    }
    assert.equal(await pond.cancel(ids[1] ?? ''), 'cancelled')
    const done = Promise.all([0, 2].map((at) => pond.result(ids[at] ?? '')))
    for (const name of names) pond.queue(name).work(async (job) => ({ worked: job.queue }))
    assert.deepEqual(await done, [{ worked: names[0] }, { worked: names[2] }])
    assert.deepEqual((await pond.workers()).map(({ queue }) => queue).sort(), [...names].sort())
  })

  test('a schedule lives with the queue of its jobs, and changes the shard with it', async () => {
    const pond = await openPond(urls(3))
    const [first, second] = [pond.queue(inShard(0, 3)), pond.queue(inShard(2, 3))]
    await pond.schedule('b', '0 7 * * *', first, null)
    await pond.schedule('a', '0 7 * * *', second, null)
    await pond.schedule('b', '0 8 * * *', second, null)
    const listed = (await pond.schedules.list()).map(({ name, queue, when }) => ({ name, queue, when }))
    assert.deepEqual(listed, [
      { name: 'a', queue: second.name, when: '0 7 * * *' },
      { name: 'b', queue: second.name, when: '0 8 * * *' },
    ])
    const alone = await openPond(urls(3)[0] ?? '')
    assert.deepEqual(
      (await alone.schedules.list()).map(({ name }) => name),
      ['millpond.shards'],
    )
    assert.equal(await pond.schedules.pause('b'), true)
    assert.equal(await pond.schedules.remove('b'), true)
    assert.equal(await pond.schedules.remove('millpond.shards'), false)
  })

  test('a schedule fires in its shard', async () => {
    const pond = await openPond(urls(3))
    const queue = pond.queue<{ n: number }>(inShard(1, 3))
    const fired = Promise.withResolvers<unknown>()
    queue.work(async ({ data }) => fired.resolve(data))
    pond.queue(inShard(2, 3)).work(async () => {})
    await pond.schedule('tick', 'every 1s', queue, { n: 1 })
    assert.deepEqual(await fired.promise, { n: 1 })
  })

  test('what belongs together but is in several shards is refused', async () => {
    const pond = await openPond(urls(3))
    const [a, b] = [pond.queue(inShard(0, 3)), pond.queue(inShard(1, 3))]
    const across = { code: 'AcrossShards' }
    const parent = await a.push(1)
    await assert.rejects(b.push(2, { after: [parent.id] }), across)
    await assert.rejects(b.push(2, { after: ['019b76da-a800-7000-8000-0000000ff001'] }), { code: 'ParentUnknown' })
    await assert.rejects(
      pond.pushAll([
        [a, 1],
        [b, 2],
      ]),
      across,
    )
    assert.equal((await a.stats()).counts.waiting, 1)
    assert.equal((await b.stats()).counts.blocked, 0)
    await pond.pushAll([
      [a, 1],
      [a, 2, { after: [0] }],
    ])
  })

  test("handlers' transactions and tx are those of the queue's shard", async () => {
    const pond = await openPond(urls(2))
    const [a, other, b] = [pond.queue<number>(inShard(0, 2)), pond.queue(inShard(0, 2)), pond.queue(inShard(1, 2))]
    const refused = Promise.withResolvers<unknown>()
    a.work(
      async (_job, ctx) => {
        await ctx.tx('create table if not exists own (n)')
        await other.push('same', { tx: ctx.tx, delay: '1h' })
        refused.resolve(await b.push('other', { tx: ctx.tx }).catch((error: unknown) => error))
        return 'done'
      },
      { transaction: true },
    )
    const { id } = await a.push(1)
    assert.equal(await pond.result(id), 'done')
    const error = await refused.promise
    assert.ok(error instanceof MillpondError && error.code === 'TransactionMismatch', String(error))
  })

  test('other stores, another order or another number of them are refused', async () => {
    const [first = '', second = '', third = ''] = urls(3)
    await (await Millpond.open([first, second])).close()
    const mismatch = { code: 'ShardMismatch' }
    await assert.rejects(Millpond.open([second, first]), mismatch)
    await assert.rejects(Millpond.open([first, second, third]), mismatch)
    await assert.rejects(Millpond.open([third, third]), mismatch)
    await (await Millpond.open([first, second])).close()
  })

  test('a store that was in use alone is no shard, unless all its queues belong to it', async () => {
    const own = urls(2, 'own')
    const alone = await openPond(own[0] ?? '')
    await alone.queue(inShard(0, 2)).push(1)
    await openPond(own)
    const foreign = urls(2, 'foreign')
    await (await openPond(foreign[0] ?? '')).queue(inShard(1, 2)).push(1)
    await assert.rejects(Millpond.open(foreign), { code: 'ShardMismatch' })
  })

  test('a move changes the number of stores; a graph that would be parted stays', async () => {
    const source = await openPond(urls(2, 'two'))
    const names = Array.from({ length: 12 }, (_, n) => `queue${n}`)
    for (const name of names) await source.queue(name).pushMany([1, 2, 3])
    const own = await source.queue('queue1').push('parent')
    await source.queue('queue1').push('child', { after: [own.id] })
    const parted = partedBy('queue0', 2, 3)
    const parent = await source.queue('queue0').push('parent')
    const child = await source.queue(parted).push('child', { after: [parent.id] })
    await source.schedule('nightly', '0 3 * * *', source.queue('queue5'), 'run')
    await assert.rejects(move(urls(2, 'two'), urls(2, 'two')), { code: 'InvalidOption' })
    await assert.rejects(move(urls(2, 'two'), urls(2, 'two')[0] ?? ''), { code: 'InvalidOption' })

    const report = await move(urls(2, 'two').join(','), urls(3, 'three'))
    const target = await openPond(urls(3, 'three'))
    assert.equal(report.moved, 12 * 3 + 2)
    assert.equal(report.schedules, 1)
    assert.deepEqual(
      report.queues.flatMap(({ queue, left }) => (left.AcrossShards ? [[queue, left.AcrossShards]] : [])).sort(),
      [
        ['queue0', 1],
        [parted, 1],
      ].sort(),
    )
    for (const id of [parent.id, child.id]) assert.notEqual(await source.job(id), undefined)
    for (const name of names) assert.ok((await target.queue(name).stats()).counts.waiting >= 3, name)
    assert.equal((await target.schedules.list()).length, 1)
  })
})

/** A queue that is in one shard with the given one, and in another with more shards. */
function partedBy(queue: string, before: number, after: number): string {
  for (let n = 100; ; n++) {
    const name = `queue${n}`
    if (shardOf(name, before) === shardOf(queue, before) && shardOf(name, after) !== shardOf(queue, after)) return name
  }
}

describe('a shard that is away', () => {
  /** Three in memory; each call of one that is away rejects, or hangs. */
  async function openThree() {
    const away = new Set<number>()
    const hanging = new Set<number>()
    const open = async (index: unknown): Promise<Store> => {
      const shard = Number(index)
      const unavailable = () => new MillpondError('StoreUnavailable', 'no answer')
      if (away.has(shard)) throw unavailable()
      const { store } = openMemory('memory:', {})
      const operations = new Proxy(store.operations, {
        get: (target, name: keyof Store['operations']) => (input: never) => {
          if (away.has(shard)) return Promise.reject(unavailable())
          if (hanging.has(shard)) return new Promise(() => {})
          return target[name](input)
        },
      })
      return { ...store, operations }
    }
    return { away, hanging, open: () => openShards([0, 1, 2], open, (store) => store) }
  }

  test('harms only its queues', async () => {
    const { away, open } = await openThree()
    const { operations, close } = await open()
    const [here, gone] = [inShard(0, 3), inShard(1, 3)]
    const jobs = [newJob({ queue: here }), newJob({ queue: gone })]
    const [known, lost] = jobs.map(({ id }) => id)
    await operations.push({ jobs })
    away.add(1)
    const unavailable = { code: 'StoreUnavailable', message: /shard 2 of 3: no answer/ }
    assert.equal((await operations.find({ ids: [known ?? ''] }))[0]?.id, known)
    await assert.rejects(operations.find({ ids: [known ?? '', lost ?? ''] }), unavailable)
    await assert.rejects(operations.find({ ids: ['019b76da-a800-7000-8000-0000000ff001'] }), unavailable)
    await assert.rejects(operations.stats({}), unavailable)
    assert.equal((await operations.stats({ queue: here })).length, 1)
    await assert.rejects(operations.stats({ queue: gone }), { code: 'StoreUnavailable' })
    assert.deepEqual(
      (await operations.push({ jobs: [newJob({ queue: here }), newJob({ queue: gone })] })).map(({ status, error }) => [
        status,
        error?.code,
      ]),
      [
        ['pushed', undefined],
        ['failed', 'StoreUnavailable'],
      ],
    )
    await assert.rejects(operations.push({ jobs: [newJob({ queue: gone })] }), { code: 'StoreUnavailable' })
    assert.equal((await operations.sweep({ limit: 10 })).queues, 1)
    assert.deepEqual(await operations.cancel({ ids: [known ?? ''] }), ['cancelled'])
    const worker = { id: 'w', host: 'h', pid: 1, slots: 1, busy: 0 }
    const workers = [here, gone].map((queue) => ({ ...worker, queue }))
    assert.deepEqual(await operations.heartbeat({ workers, gone: [] }), [true, false])
    // An unknown parent may be in the one that is away.
    const child = newJob({ queue: here, after: [lost ?? ''] })
    assert.equal((await operations.push({ jobs: [child] }))[0]?.error?.code, 'StoreUnavailable')
    away.clear()
    assert.equal((await operations.find({ ids: [lost ?? ''] }))[0]?.id, lost)
    assert.equal((await operations.stats({})).length, 2)
    await close()
  })

  test('one that does not answer keeps no call to all waiting, once it is known to be away', async () => {
    const { away, hanging, open } = await openThree()
    const store = await open()
    away.add(2)
    await assert.rejects(store.operations.stats({}))
    hanging.add(2)
    away.clear()
    await assert.rejects(store.operations.stats({}), { code: 'StoreUnavailable' })
    assert.equal((await store.operations.sweep({ limit: 10 })).more, false)
  })

  test('a push that waits for it holds up no push of the same moment to another', async () => {
    const { hanging, open } = await openThree()
    const pond = new Millpond(await open(), 1_000_000)
    hanging.add(1)
    const late = pond.queue(inShard(1, 3)).push(1)
    late.catch(() => {})
    assert.ok((await pond.queue(inShard(0, 3)).push(1)).id)
  })

  test('it may be away when the pond is opened, and is opened later; its bells are heard then', async () => {
    const { away, open } = await openThree()
    away.add(0)
    const store = await open()
    const rung = Promise.withResolvers<string>()
    const stop = store.listen(({ kind, queue }) => kind === 'work' && rung.resolve(queue))
    const queue = inShard(0, 3)
    await assert.rejects(store.operations.push({ jobs: [newJob({ queue })] }), {
      code: 'StoreUnavailable',
      message: /shard 1 of 3/,
    })
    away.clear()
    assert.equal((await store.operations.push({ jobs: [newJob({ queue })] }))[0]?.status, 'pushed')
    assert.equal(await rung.promise, queue)
    stop()
    await store.close()
    await assert.rejects(store.operations.stats({}), { code: 'Closed' })
  })

  test('all away: opening ends with the error', async () => {
    const { away, open } = await openThree()
    for (const shard of [0, 1, 2]) away.add(shard)
    await assert.rejects(open(), { code: 'StoreUnavailable' })
  })

  test('results of other queues come, while one is awaited in the shard that is away', async () => {
    const { away, open } = await openThree()
    const store = await open()
    const pond = new Millpond(store, 1_000_000)
    opened.push(pond)
    const [here, gone] = [pond.queue(inShard(0, 3)), pond.queue(inShard(1, 3))]
    const [known, lost] = [await here.push(1), await gone.push(2)]
    away.add(1)
    const late = pond.result(lost.id, { timeout: '20s' })
    const found = pond.result(known.id, { timeout: '20s' })
    const [claimed] = (await store.operations.claim({ queue: here.name, worker: 'w', limit: 1, lease: 60_000 })).jobs
    assert.ok(claimed)
    const result = { encoding: 'json' as const, body: '"it is done"' }
    await store.operations.complete({ queue: here.name, items: [{ ...claimed, result }] })
    assert.equal(await found, 'it is done')
    away.clear()
    await pond.cancel(lost.id)
    await assert.rejects(late, { code: 'JobCancelled' })
  })
})

describe('a missing SQLite file', () => {
  test('the command line does not make it', async () => {
    const { openExisting } = await import('../../src/stores/existing.ts')
    await (await openStore(urls(2), {})).close()
    await rename(join(folder, 'shard1.db'), join(folder, 'away.db'))
    await assert.rejects(openExisting(urls(2).join(',')), { code: 'StoreUnavailable' })
  })
})
