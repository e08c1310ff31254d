/** Jobs that wait for other jobs, as users have them: docs/graphs.md. */
import assert from 'node:assert/strict'
import { type Millpond, Outcome } from '../../src/index.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import { effectsOf } from './effects.ts'
import { first, gate, inState, onEachStore, refused } from './suite.ts'

const UNKNOWN = '01a214d3-a796-7d6a-953f-a86f16000bdf'
const states = async (pond: Millpond, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await pond.job(id))?.state))

onEachStore('graphs', {
  'a job starts when its last parent is done, whatever their queues, and is shown their results': async ({ open }) => {
    const pond = await open()
    const [resize, mail] = [pond.queue<number, number>('resize'), pond.queue<string, number[]>('mail')]
    const parents = await Promise.all([resize.push(1), resize.push(2)])
    const ids = parents.map(({ id }) => id)
    const child = await mail.push('done', { after: ids })
    assert.equal((await pond.job(child.id))?.state, 'blocked')
    assert.equal((await pond.job(child.id))?.waitsFor, 2)
    mail.work(async ({ data }, ctx) => {
      const all = await ctx.parents<number>()
      assert.equal(data, 'done')
      assert.deepEqual(
        all.map(({ id, queue, state, error }) => ({ id, queue, state, error })),
        ids.toSorted().map((id) => ({ id, queue: 'resize', state: 'done', error: null })),
      )
      return all.map(({ result }) => result ?? -1)
    })
    resize.work(({ data }) => data * 10)
    assert.deepEqual((await pond.result<number[]>(child.id, { timeout: '20s' })).toSorted(), [10, 20])
    const late = await mail.push('done', { after: ids })
    assert.deepEqual((await pond.result<number[]>(late.id, { timeout: '20s' })).toSorted(), [10, 20])
  },

  'a parent that is gone is in the list, marked so': async ({ open }) => {
    const pond = await open()
    const [book, settle] = [pond.queue<number, number>('book'), pond.queue<null, unknown>('settle')]
    const [kept, gone] = [await book.push(1), await book.push(2)]
    const child = await settle.push(null, { after: [kept.id, gone.id] })
    book.work(({ data }) => data * 10)
    await inState(pond, child.id, 'waiting')
    assert.equal(await book.remove([gone.id]), 1)
    settle.work((_job, ctx) => ctx.parents())
    assert.deepEqual(
      await pond.result(child.id, { timeout: '20s' }),
      [
        { id: kept.id, queue: 'book', state: 'done', result: 10, error: null },
        { id: gone.id, queue: null, state: 'gone', error: null },
      ].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    )
  },

  'a dead parent cancels its children and theirs; with onDead: run they start, and see why': async ({ open }) => {
    const pond = await open()
    const [book, rest] = [pond.queue('book'), pond.queue('rest')]
    const parent = await book.push('hotel')
    const child = await rest.push('car', { after: [parent.id] })
    const grandchild = await rest.push('bill', { after: [child.id] })
    const undo = await rest.push('undo', { after: [grandchild.id], onDead: 'run' })
    assert.equal((await pond.job(undo.id))?.onDead, 'run')
    rest.work(async (_job, ctx) => (await ctx.parents()).map(({ state, error }) => [state, error?.code]))
    book.work(() => Outcome.giveUp(new Error('no room')))
    assert.deepEqual(await pond.result(undo.id, { timeout: '20s' }), [['cancelled', 'ParentFailed']])
    assert.deepEqual(await states(pond, [parent.id, child.id, grandchild.id]), ['dead', 'cancelled', 'cancelled'])
    const failed = await refused(pond.result(child.id), 'ParentFailed', new RegExp(parent.id))
    assert.equal(failed.id, child.id)
    // One that is pushed later is cancelled at once.
    const late = await rest.push('late', { after: [parent.id] })
    await refused(pond.result(late.id, { timeout: '20s' }), 'ParentFailed')
    // A caller's own cancel is none of a parent.
    const delayed = await rest.push('x', { delay: '1h' })
    await pond.cancel(delayed.id)
    await refused(pond.result(delayed.id), 'JobCancelled')
    assert.equal(await rest.requeue([child.id]), 1)
    assert.deepEqual(await pond.result(child.id, { timeout: '20s' }), [['dead', 'GaveUp']])
  },

  'pushAll stores a graph by its places, in any order of the list': async ({ open }) => {
    const pond = await open()
    const [a, b] = [pond.queue<string>('a'), pond.queue<{ n: number }>('b')]
    const order: string[] = []
    const pushed = await pond.pushAll([
      [b, { n: 3 }, { after: [1, 2], priority: 9 }],
      [a, 'first'],
      [a, 'second', { after: [1] }],
    ])
    assert.deepEqual(
      pushed.map(({ existing }) => existing),
      [false, false, false],
    )
    const ids = pushed.map(({ id }) => id)
    assert.deepEqual(await states(pond, ids), ['blocked', 'waiting', 'blocked'])
    a.work(({ data }) => order.push(data))
    b.work(({ data }) => order.push(`b${data.n}`))
    await pond.result(ids[0] ?? '', { timeout: '20s' })
    assert.deepEqual(order, ['first', 'second', 'b3'])
    const graph = await pond.graph(ids[2] ?? '')
    assert.deepEqual(graph?.counts, {
      blocked: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      done: 3,
      dead: 0,
      cancelled: 0,
    })
    assert.deepEqual([graph?.left, graph?.more], [0, false])
    const [node] = graph?.nodes ?? []
    assert.deepEqual([node?.id, node?.parents, node?.children], [ids[2], [ids[1]], [ids[0]]])
    assert.deepEqual(await pond.pushAll([]), [])
  },

  'pushAll stores all or none': async ({ open }) => {
    const pond = await open()
    const [a, full] = [pond.queue('a'), pond.queue('full', { capacity: 1, whenFull: 'wait' })]
    const cycle = pond.pushAll([
      [a, 0],
      [a, 1, { after: [3] }],
      [a, 2, { after: [1] }],
      [a, 3, { after: [2, 0] }],
    ])
    await refused(cycle, 'GraphCycle', /1 after 3 after 2 after 1/)
    await refused(pond.pushAll([[a, 0, { after: [0] }]]), 'GraphCycle', /0 after 0/)
    await refused(
      pond.pushAll([[a, 0, { after: [1] }]]),
      'InvalidOption',
      /job 0: after names the place 1; places are 0 to 0/,
    )
    const orphans = pond.pushAll([
      [a, 0],
      [a, 1, { after: [0, UNKNOWN] }],
    ])
    assert.equal((await refused(orphans, 'ParentUnknown', new RegExp(UNKNOWN))).id, UNKNOWN)
    const many = pond.pushAll([
      [a, 0],
      [full, 1, { after: [0] }],
      [full, 2, { after: [0] }],
    ])
    assert.equal((await refused(many, 'QueueFull', /full/)).queue, 'full')
    const other = pond.pushAll([
      [a, 0],
      [full, () => {}],
    ])
    await refused(other, 'PayloadNotEncodable')
    for (const one of await pond.stats()) assert.equal(one.totals.pushed, 0, one.queue)
  },

  'a call of pushAll that is repeated with its ids stores nothing twice': async ({ open }) => {
    const pond = await open()
    const a = pond.queue('a')
    const ids = [newId(), newId()] as const
    const push = () =>
      pond.pushAll([
        [a, 0, { id: ids[0], key: 'k' }],
        [a, 1, { id: ids[1], after: [0] }],
      ])
    await push()
    assert.deepEqual(
      await push(),
      ids.map((id) => ({ id, existing: true })),
    )
    // The job that has the key stands for the one that was to be pushed.
    const [kept, child] = await pond.pushAll([
      [a, 2, { key: 'k' }],
      [a, 3, { after: [0] }],
    ])
    assert.equal(kept?.id, ids[0])
    assert.deepEqual((await pond.graph(child?.id ?? ''))?.nodes[0]?.parents, [ids[0]])
  },

  'a callback starts when all of its batch have ended, and graph counts them': async ({ open }) => {
    const pond = await open()
    const [rows, report] = [
      pond.queue<number>('rows', { retry: { attempts: 1 } }),
      pond.queue<string, string[]>('report'),
    ]
    const pushed = await rows.pushMany([1, 2, 3], { callback: [report, 'import 7'] })
    assert.equal(pushed.jobs.length, 3)
    pond.on('dead', () => {})
    const before = await pond.graph(pushed.callback.id)
    assert.deepEqual([before?.left, before?.counts.blocked, before?.nodes[0]?.onDead], [4, 1, 'run'])
    report.work(async (_job, ctx) => (await ctx.parents()).map(({ state }) => state).toSorted())
    rows.work(({ data }) => {
      if (data === 2) throw new Error('a bad row')
    })
    assert.deepEqual(await pond.result(pushed.callback.id, { timeout: '20s' }), ['dead', 'done', 'done'])
    const after = await pond.graph(pushed.callback.id, { limit: 3 })
    assert.deepEqual([after?.nodes.length, after?.more], [3, true])
    const empty = await rows.pushMany([], { callback: [report, 'nothing'] })
    assert.deepEqual(await pond.result(empty.callback.id, { timeout: '20s' }), [])
    await refused(rows.pushMany([1], { callback: [report, 'x', { after: [UNKNOWN] }] }), 'ParentUnknown')
    assert.equal((await rows.stats()).totals.pushed, 3)
  },

  'a job with parents whose key another job has is refused, and with it all that are pushed with it': async ({
    open,
  }) => {
    const pond = await open()
    const [rows, report] = [pond.queue<number>('rows'), pond.queue<string>('report')]
    const parent = await rows.push(0)
    const holder = await report.push('first', { key: 'k' })
    const isRefused = async (push: Promise<unknown>) => {
      const error = await refused(push, 'KeyHeld', /has the key/)
      assert.equal(error.id, holder.id)
    }
    await isRefused(report.push('second', { key: 'k', after: [parent.id] }))
    await isRefused(report.pushMany(['second'], { after: [parent.id], each: () => ({ key: 'k' }) }))
    await isRefused(
      pond.pushAll([
        [rows, 1],
        [report, 'second', { key: 'k', after: [0] }],
      ]),
    )
    await isRefused(rows.pushMany([1, 2], { callback: [report, 'second', { key: 'k' }] }))
    const [pushed, reported] = await Promise.all([rows.stats(), report.stats()])
    assert.deepEqual([pushed.totals.pushed, reported.totals.pushed], [1, 1])
    await pond.cancel(holder.id)
    const { callback } = await rows.pushMany([1], { callback: [report, 'second', { key: 'k' }] })
    assert.equal((await pond.job(callback.id))?.waitsFor, 1)
  },

  'a handler pushes parts of its own job, what others then wait for, and after its own job': async ({ open }) => {
    const pond = await open()
    const [crawl, index] = [pond.queue<number>('crawl'), pond.queue<string, number>('index')]
    const [begun, held] = [gate(), gate()]
    let late = ''
    crawl.work(async ({ data, id }) => {
      if (data === 0) {
        await begun.opened
        await crawl.pushMany([1, 2], { partOf: id })
        late = (await index.push('late', { after: [id] })).id
      } else await held.opened
    })
    const { id } = await crawl.push(0)
    const last = await index.push('all', { after: [id] })
    begun.open()
    index.work(async (_job, ctx) => (await ctx.parents()).length)
    assert.equal(await pond.result((await inState(pond, id, 'done')) && late, { timeout: '20s' }), 1)
    assert.equal((await pond.job(last.id))?.waitsFor, 2)
    held.open()
    assert.equal(await pond.result(last.id, { timeout: '20s' }), 3)
    await refused(crawl.push(3, { partOf: id }), 'ParentUnknown')
  },

  'a child may be pushed before the push of its parent has settled, if it names its id': async ({ open }) => {
    const pond = await open()
    const [a, b] = [pond.queue('a', { capacity: 10 }), pond.queue('b')]
    const [id, next, failing] = [newId(), newId(), newId()]
    const kept = await a.push(0, { key: 'k' })
    const pushes = [
      a.push(1, { id: id.toUpperCase() }),
      b.push(2, { id: next, after: [id.toUpperCase()] }),
      a.push(3, { after: [id, next] }),
      a.push(4, { id: failing, key: 'k' }),
      b.push(5, { after: [failing] }),
    ]
    const ids = (await Promise.all(pushes)).map((one) => one.id)
    assert.deepEqual(await states(pond, ids), ['waiting', 'blocked', 'blocked', 'waiting', 'blocked'])
    // The job that has the key is the parent.
    assert.deepEqual((await pond.graph(ids[4] ?? ''))?.nodes[0]?.parents, [kept.id])
    const own = newId()
    const chain = await a.pushMany([6, 7], { each: (data) => (data === 6 ? { id: own } : { after: [own] }) })
    assert.deepEqual(await states(pond, [chain[0]?.id ?? '', chain[1]?.id ?? '']), ['waiting', 'blocked'])
  },

  'explain names the parents that have not ended': async ({ open }) => {
    const pond = await open()
    const [a, b] = [pond.queue('a'), pond.queue('b')]
    const ids = (await a.pushMany([...Array(12).keys()])).map((one) => one.id)
    const { id } = await b.push(null, { after: ids })
    const told = await pond.explain(id)
    const [reason] = told?.reasons ?? []
    assert.ok(reason?.kind === 'parents')
    assert.equal(reason.jobs, 12)
    assert.equal(reason.parents.length, 10)
    assert.deepEqual(reason.parents[0], { id: ids.toSorted()[0], queue: 'a', state: 'waiting' })
    assert.match(told?.text ?? '', /^Job .* waits: 12 jobs have not ended: .*\(a, waiting\), and 2 more\.$/)
    assert.equal(await pond.explain(UNKNOWN), undefined)
    assert.equal(await pond.graph(UNKNOWN), undefined)
  },

  'blocked jobs are counted, listed, updated, cancelled one by one and in bulk': async ({ open }) => {
    const pond = await open()
    const q = pond.queue<number>('q')
    const parent = await q.push(0)
    const children = await q.pushMany([1, 2, 3], { after: [parent.id] })
    const ids = children.map(({ id }) => id)
    assert.deepEqual((await q.stats()).counts, { ...(await q.stats()).counts, blocked: 3, waiting: 1 })
    assert.deepEqual(
      (await q.jobs('blocked')).map(({ id }) => id),
      ids,
    )
    assert.equal(await q.update(first(ids), { data: 9 }), 'updated')
    assert.deepEqual([(await pond.job(first(ids)))?.data, (await pond.job(first(ids)))?.state], [9, 'blocked'])
    assert.equal(await pond.cancel(ids[2] ?? ''), 'cancelled')
    assert.equal((await q.cancelAll({ state: 'blocked' }, { dryRun: true })).count, 2)
    assert.equal((await q.cancelAll({ state: 'blocked' })).changed, 2)
    assert.deepEqual(await states(pond, [parent.id, ...ids]), ['waiting', 'cancelled', 'cancelled', 'cancelled'])
  },
})

onEachStore(
  'graphs in transactions',
  {
    'a push with tx and what waits for it': async ({ open }) => {
      const pond = await open()
      const [a, b] = [pond.queue<number>('a'), pond.queue<number>('b')]
      let pushed: string[] = []
      a.work(
        async (_job, { tx }) => {
          await tx('select 1')
          const parent = await b.push(1, { tx })
          const child = await b.push(2, { tx, after: [parent.id] })
          const more = await pond.pushAll(
            [
              [b, 3, { after: [1] }],
              [b, 4],
            ],
            { tx },
          )
          pushed = [parent.id, child.id, ...more.map(({ id }) => id)]
          await refused(b.push(5, { tx, after: [UNKNOWN] }), 'ParentUnknown')
        },
        { transaction: true },
      )
      const { id } = await a.push(0)
      await pond.result(id, { timeout: '20s' })
      assert.deepEqual(await states(pond, pushed), ['waiting', 'blocked', 'blocked', 'waiting'])
    },

    'all of a graph or none, and the transaction of the caller goes on': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      const { tx } = db
      const a = pond.queue<number>('a')
      const few = pond.queue<number>('few', { capacity: 1 })
      await db.run('begin')
      await db.run(db.insert, ['mine'])
      // Parts of a graph: before what is refused, behind it, and in other queues.
      await refused(
        pond.pushAll(
          [
            [a, 1],
            [a, 2, { after: [UNKNOWN] }],
            [few, 3, { after: [0] }],
          ],
          { tx },
        ),
        'ParentUnknown',
      )
      await refused(
        pond.pushAll(
          [
            [a, 1],
            [few, 2],
            [few, 3, { after: [0] }],
          ],
          { tx },
        ),
        'QueueFull',
      )
      await refused(a.pushMany([1, 2], { tx, callback: [few, 0, { after: [UNKNOWN] }] }), 'ParentUnknown')
      const ids = [newId(), newId()]
      const each = (_: number, at: number) => ({ id: ids[at], after: at === 0 ? [] : [first(ids), UNKNOWN] })
      await refused(a.pushMany([1, 2], { tx, each }), 'ParentUnknown')
      const pushed = await pond.pushAll(
        [
          [few, 2, { after: [1] }],
          [a, 1, { key: 'k' }],
          [a, 0, { key: 'k' }],
        ],
        { tx },
      )
      await db.run('commit')
      assert.deepEqual(await db.all(), ['mine'])
      assert.deepEqual(
        pushed.map(({ existing }) => existing),
        [false, false, true],
      )
      assert.equal(pushed[1]?.id, pushed[2]?.id)
      const ends = await Promise.all([a, few].map(async (queue) => (await queue.stats()).counts))
      assert.deepEqual(
        ends.map(({ waiting, blocked }) => [waiting, blocked]),
        [
          [1, 0],
          [0, 1],
        ],
      )
    },

    'all of a graph or none in the transaction of a handler': async ({ open }) => {
      const pond = await open()
      const [a, b, few] = [pond.queue<number>('a'), pond.queue<number>('b'), pond.queue<number>('few', { capacity: 1 })]
      a.work(
        async (_job, { tx }) => {
          await tx('select 1')
          await refused(
            pond.pushAll(
              [
                [b, 1],
                [few, 2],
                [few, 3, { after: [0] }],
              ],
              { tx },
            ),
            'QueueFull',
          )
          await refused(
            pond.pushAll(
              [
                [b, 1],
                [few, 2, { after: [0, UNKNOWN] }],
              ],
              { tx },
            ),
            'ParentUnknown',
          )
        },
        { transaction: true },
      )
      await pond.result((await a.push(0)).id, { timeout: '20s' })
      for (const queue of [b, few]) assert.deepEqual(await queue.jobs('waiting'), [])
    },
  },
  'transactions',
)
