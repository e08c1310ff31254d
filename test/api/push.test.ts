/** What a push stores, and in which order it is worked off. */
import assert from 'node:assert/strict'
import { z } from 'zod'
import type { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { first, inState, numbers, onEachStore, refused } from './suite.ts'

/** Works the queue off, one job at a time, and gives the data in the order of starting. */
/** The jobs in the order in which claims take them. (A busy worker may give back what it claimed ahead, and runs later ones first.) */
async function order(pond: Millpond, name: string, count: number): Promise<unknown[]> {
  const first = await pond.queue(name).jobs('waiting', { limit: 1000 })
  const cursor = first.at(-1)?.cursor
  const rest =
    count > first.length && cursor ? await pond.queue(name).jobs('waiting', { limit: 1000, after: cursor }) : []
  const jobs = [...first, ...rest]
  assert.equal(jobs.length, count)
  return jobs.map(({ data }) => data)
}

onEachStore('push', {
  'a pushed job is there, with the defaults': async ({ open }) => {
    const pond = await open()
    const { id, existing } = await pond.queue('emails').push({ to: 'a@example.org' })
    assert.equal(existing, false)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const info = await pond.job(id)
    assert.ok(info)
    const { pushedAt, dueAt, ...rest } = info
    assert.ok(pushedAt instanceof Date)
    assert.deepEqual(dueAt, pushedAt)
    assert.deepEqual(rest, {
      id,
      queue: 'emails',
      state: 'waiting',
      priority: 4,
      attempt: 0,
      attempts: 10,
      key: null,
      log: [],
      group: null,
      cost: 1,
      timeout: null,
      trace: null,
      startedAt: null,
      finishedAt: null,
      worker: null,
      data: { to: 'a@example.org' },
      progress: undefined,
      result: undefined,
      error: null,
      fence: 0,
      undecodable: [],
    })
  },

  'the options of a push are kept, and reach the handler': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue('q', { retry: { attempts: 3 } })
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const { id } = await queue.push(1, { priority: 9, key: 'k', group: 'g', attempts: 2, timeout: '1m', trace })
    const other = await queue.push(2)
    const [info, plain] = [await pond.job(id), await pond.job(other.id)]
    assert.deepEqual([info?.priority, info?.key, info?.group, info?.attempts], [9, 'k', 'g', 2])
    assert.equal(plain?.attempts, 3)
    const seen: unknown[] = []
    queue.work((job) => {
      const { queue, priority, attempt, attempts, key, group, trace, data, pushedAt, dueAt } = job
      seen.push({ id: job.id, queue, priority, attempt, attempts, key, group, trace, data, pushedAt, dueAt })
    })
    await until(() => seen.length === 2)
    assert.deepEqual(seen[0], {
      id,
      queue: 'q',
      priority: 9,
      attempt: 1,
      attempts: 2,
      key: 'k',
      group: 'g',
      trace,
      data: 1,
      pushedAt: info?.pushedAt,
      dueAt: info?.dueAt,
    })
  },

  'jobs start in the order of their pushes': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    await Promise.all(numbers(50).map((n) => queue.push(n)))
    await queue.pushMany(numbers(50).map((n) => 50 + n))
    assert.deepEqual(await order(pond, 'q', 100), numbers(100))
  },

  'higher priorities start first, equal ones in order': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    for (const [name, priority] of [
      ['low', 0],
      ['a', 4],
      ['urgent', 9],
      ['b', undefined],
      ['high', 7],
      ['urgent too', 9],
    ] as const) {
      await queue.push(name, priority === undefined ? {} : { priority })
    }
    assert.deepEqual(await order(pond, 'q', 6), ['urgent', 'urgent too', 'high', 'a', 'b', 'low'])
  },

  'pushMany keeps order, and takes options for all and for each': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const id = '01932c0e-5b00-7abc-8def-0123456789ab'
    const pushed = await queue.pushMany([10, 11, 12, 13], {
      priority: 2,
      group: 'all',
      each: (data, index) => {
        if (index === 1) return { priority: 5, key: `key ${data}` }
        return index === 2 ? { id, group: 'own' } : {}
      },
    })
    assert.deepEqual(
      pushed.map(({ existing }) => existing),
      [false, false, false, false],
    )
    const infos = await Promise.all(pushed.map(({ id }) => pond.job(id)))
    assert.deepEqual(
      infos.map((info) => [info?.data, info?.priority, info?.group, info?.key]),
      [
        [10, 2, 'all', null],
        [11, 5, 'all', 'key 11'],
        [12, 2, 'own', null],
        [13, 2, 'all', null],
      ],
    )
    assert.equal(pushed[2]?.id, id)
    assert.deepEqual(await order(pond, 'q', 4), [11, 10, 12, 13])
  },

  'pushMany of more than one call carries keeps the order': async ({ open }) => {
    const pond = await open()
    const pushed = await pond.queue<number>('q').pushMany(numbers(1300))
    assert.equal(new Set(pushed.map(({ id }) => id)).size, 1300)
    assert.equal((await pond.queue('q').stats()).counts.waiting, 1300)
    assert.deepEqual(await order(pond, 'q', 1300), numbers(1300))
  },

  'pushMany of nothing is nothing': async ({ open }) => {
    const pond = await open()
    assert.deepEqual(await pond.queue('q').pushMany([]), [])
  },

  'pushMany into a queue that fills up tells how many it holds': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 600 })
    const error = await refused(queue.pushMany(numbers(1300)), 'QueueFull', /full/)
    assert.equal(error.pushed, 600)
    assert.equal(error.queue, 'q')
    assert.equal(error.retryable, true)
    assert.deepEqual(await order(pond, 'q', 600), numbers(600))
  },

  'pushMany checks all before it stores any': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    await refused(queue.pushMany([...numbers(700), () => {}]), 'PayloadNotEncodable')
    await refused(queue.pushMany(numbers(700), { each: (_, i) => ({ priority: i === 699 ? 10 : 1 }) }), 'InvalidOption')
    assert.equal((await queue.stats()).counts.waiting, 0)
  },

  'options for one job only are refused for many': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    // Were they taken, all but the first would be silently dropped as already existing.
    const withKey: object = { key: 'k' }
    const withId: object = { id: '01932c0e-5b00-7abc-8def-0123456789ab' }
    await refused(queue.pushMany([1, 2], withKey), 'InvalidOption', /key/)
    await refused(queue.pushMany([1, 2], withId), 'InvalidOption', /id/)
    const withTx: () => object = () => ({ tx: {} })
    await refused(queue.pushMany([1, 2], { each: withTx }), 'InvalidOption', /tx/)
    const later: () => object = async () => ({ key: 'k' })
    await refused(queue.pushMany([1, 2], { each: later }), 'InvalidOption', /each/)
    assert.equal((await queue.stats()).counts.waiting, 0)
  },

  'a delayed job is scheduled, then runs by itself': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const seen: unknown[] = []
    queue.work((job) => void seen.push(job.data))
    const { id } = await queue.push('later', { delay: 60 })
    const info = await pond.job(id)
    assert.ok(info)
    assert.ok(info.dueAt.getTime() - info.pushedAt.getTime() === 60)
    await until(() => seen.length === 1)
    const done = await inState(pond, id, 'done')
    assert.ok(done.startedAt && done.startedAt >= done.dueAt, 'it never starts before it is due')
  },

  'runAt as a Date or in milliseconds': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const at = Date.now() + 3_600_000
    const byDate = await queue.push('a', { runAt: new Date(at) })
    const byNumber = await queue.push('b', { runAt: at })
    const past = await queue.push('c', { runAt: new Date(0) })
    for (const { id } of [byDate, byNumber]) {
      const info = await pond.job(id)
      assert.deepEqual([info?.state, info?.dueAt.getTime()], ['scheduled', at])
    }
    const info = await pond.job(past.id)
    assert.equal(info?.state, 'waiting')
    assert.deepEqual(info.dueAt, info.pushedAt)
  },

  'many delayed jobs become due one after another': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const seen: number[] = []
    queue.work((job) => void seen.push(job.data))
    // Close together, so that the next one falls due while a sweep for the one before is under way.
    await queue.pushMany(numbers(40), { each: (n) => ({ delay: 1 + n * 3 }) })
    await Promise.all(numbers(20).map((n) => queue.push(100 + n, { delay: 1 + n })))
    await until(() => seen.length === 60)
  },

  'of live jobs with the same key there is one': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const one = await queue.push('one', { key: 'welcome:42' })
    assert.deepEqual(await queue.push('two', { key: 'welcome:42' }), { id: one.id, existing: true })
    const elsewhere = await pond.queue<string>('other').push('three', { key: 'welcome:42' })
    assert.equal(elsewhere.existing, false)
    queue.work(() => {})
    await inState(pond, one.id, 'done')
    const again = await queue.push('four', { key: 'welcome:42' })
    assert.equal(again.existing, false)
    assert.notEqual(again.id, one.id)
    assert.equal((await pond.job(one.id))?.data, 'one')
  },

  'of concurrent pushes with the same key one is stored': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const pushed = await Promise.all(numbers(30).map((n) => queue.push(n, { key: 'k' })))
    assert.equal(new Set(pushed.map(({ id }) => id)).size, 1)
    assert.equal(pushed.filter(({ existing }) => !existing).length, 1)
  },

  'a push with a known id changes nothing': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const id = '01932C0E-5B00-7ABC-8DEF-0123456789AB'
    const lower = id.toLowerCase()
    assert.deepEqual(await queue.push('one', { id }), { id: lower, existing: false })
    assert.deepEqual(await queue.push('two', { id: lower, priority: 9 }), { id: lower, existing: true })
    const info = await pond.job(id)
    assert.deepEqual([info?.id, info?.data, info?.priority], [lower, 'one', 4])
    queue.work(() => 'result')
    assert.equal(await pond.result(id), 'result')
    assert.deepEqual(await queue.push('three', { id }), { id: lower, existing: true }, 'nor after it is done')
  },

  'a payload is what it was when it was pushed': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<object>('q')
    const bytes = new Uint8Array([1, 2, 3])
    const data = { list: [1] }
    const pushes = [queue.push(data), queue.push(bytes)]
    data.list.push(2)
    bytes.fill(9)
    const infos = await Promise.all((await Promise.all(pushes)).map(({ id }) => pond.job(id)))
    assert.deepEqual(infos[0]?.data, { list: [1] })
    const stored = infos[1]?.data
    assert.ok(stored instanceof Uint8Array)
    assert.deepEqual([...stored], [1, 2, 3])
  },

  'a list is what it was when it was pushed: its items, data and options': async ({ open }) => {
    const pond = await open()
    const anyText = z.string().refine(async () => true)
    for (const schema of [undefined, z.object({ n: z.number(), to: anyText })]) {
      const queue = pond.queue<{ n: number; to: string }>(
        schema === undefined ? 'plain' : 'checked',
        schema === undefined ? {} : { schema },
      )
      const items = numbers(501).map((n) => ({ n, to: 'then' }))
      const options = { priority: 7 }
      const pushing = queue.pushMany(items, options)
      for (const item of items) item.to = 'now'
      items.length = 0
      options.priority = 1
      assert.equal((await pushing).length, 501)
      const infos = await queue.jobs('waiting', { limit: 1000 })
      assert.deepEqual(
        infos.map(({ data, priority }) => [data, priority]),
        numbers(501).map((n) => [{ n, to: 'then' }, 7]),
      )
      const one = { n: 1, to: 'then' }
      const single = queue.push(one)
      one.to = 'now'
      assert.deepEqual((await pond.job((await single).id))?.data, { n: 1, to: 'then' })
    }
  },

  'jobs of one state, a page at a time': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    await queue.pushMany(numbers(25))
    await queue.push(99, { priority: 8 })
    await queue.push(100, { delay: '1h' })
    const all: unknown[] = []
    let after: string | undefined
    for (;;) {
      const page = await queue.jobs('waiting', { limit: 10, ...(after === undefined ? {} : { after }) })
      if (page.length === 0) break
      assert.ok(page.length <= 10)
      all.push(...page.map(({ data }) => data))
      after = page.at(-1)?.cursor
    }
    assert.deepEqual(all, [99, ...numbers(25)])
    assert.equal(first(await queue.jobs('scheduled')).data, 100)
    assert.deepEqual(await queue.jobs('dead'), [])
    assert.deepEqual(await pond.queue('never.seen').jobs('waiting'), [])
  },
})
