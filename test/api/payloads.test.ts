/** What goes in comes out: as data, as result, in `pond.job`. */
import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { first, inState, numbers, onEachStore, refused } from './suite.ts'

const ALL_BYTES = Uint8Array.from(numbers(256))

/** Value pushed → value that the handler gets. */
const CASES: [title: string, pushed: unknown, got: unknown][] = [
  ['text with everything', 'é\0\u2028\\ud83d"\\🌊', 'é\0\u2028\\ud83d"\\🌊'],
  ['a deep object', { a: [{ b: { c: null } }, true, 1.5] }, { a: [{ b: { c: null } }, true, 1.5] }],
  ['null', null, null],
  ['undefined', undefined, null],
  ['a number', 0.1, 0.1],
  ['a Date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['undefined inside', { a: undefined, b: [undefined] }, { b: [null] }],
  [
    'a class of one’s own',
    new (class Point {
      x = 1
      y = 2
    })(),
    { x: 1, y: 2 },
  ],
  ['not a number', [Number.NaN, Number.POSITIVE_INFINITY], [Number.NaN, Number.POSITIVE_INFINITY]],
  ['big integers', { n: 2n ** 63n, m: -5n }, { n: 2n ** 63n, m: -5n }],
  ['a Date beside bytes', { at: new Date(0), nothing: undefined, b: 1n }, { at: '1970-01-01T00:00:00.000Z', b: 1n }],
  [
    'a __proto__ key',
    JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'),
    JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'),
  ],
]

onEachStore('payloads', {
  'every kind of data, there and back': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    const worker = queue.work((job) => job.data)
    for (const [title, pushed, got] of CASES) {
      const { id } = await queue.push(pushed)
      assert.deepEqual(await pond.result(id), got, title)
      assert.deepEqual((await pond.job(id))?.data, got, title)
    }
    await worker.close()
  },

  'bytes are the same bytes, alone and nested': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    queue.work((job) => job.data)
    const shared = new Uint8Array([...ALL_BYTES, ...ALL_BYTES])
    for (const bytes of [ALL_BYTES, Buffer.from(ALL_BYTES), new Uint8Array(0), shared.subarray(3, 200)]) {
      const alone = await pond.result((await queue.push(bytes)).id)
      assert.ok(alone instanceof Uint8Array)
      assert.equal(Buffer.compare(alone, bytes), 0)
      const nested = await pond.result((await queue.push({ list: [bytes, 'text'] })).id)
      assert.ok(typeof nested === 'object' && nested !== null && 'list' in nested && Array.isArray(nested.list))
      const [inner] = nested.list
      assert.ok(inner instanceof Uint8Array)
      assert.equal(Buffer.compare(inner, bytes), 0)
    }
  },

  'what cannot be encoded is refused, with what it is': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<unknown>('q')
    const circular: { self?: unknown } = {}
    circular.self = circular
    const getter = {
      get x(): never {
        throw new Error('in the getter')
      },
    }
    const cases: [unknown, RegExp][] = [
      [() => {}, /function/],
      [{ deep: [Symbol('s')] }, /symbol/],
      [new Map(), /Map/],
      [{ set: new Set() }, /Set/],
      [circular, /refers to itself/],
      [new Date(Number.NaN), /invalid Date/],
      [2n ** 64n, /64 bits/],
      [getter, /Error at .*payloads\.test\.ts/],
      [Promise.resolve(), /Promise/],
      [new Float64Array(2), /Float64Array/],
      [new ArrayBuffer(2), /ArrayBuffer/],
    ]
    for (const [value, message] of cases) await refused(queue.push(value), 'PayloadNotEncodable', message)
    assert.equal((await queue.stats()).counts.waiting, 0)
  },

  'what is too large is refused, with the limit': async ({ open }) => {
    const pond = await open({ maxPayload: 100 })
    const queue = pond.queue<unknown>('q')
    for (const value of ['x'.repeat(99), 'é'.repeat(50), new Uint8Array(101), { b: new Uint8Array(100) }]) {
      await refused(queue.push(value), 'PayloadTooLarge', /100.*maxPayload/)
    }
    for (const value of ['x'.repeat(98), 'é'.repeat(49), new Uint8Array(100)]) await queue.push(value)
    assert.equal((await queue.stats()).counts.waiting, 3)
  },

  'a mebibyte goes through unless set otherwise, a byte more does not': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<Uint8Array>('q')
    const most = new Uint8Array(1_048_576).fill(7)
    const { id } = await queue.push(most)
    await refused(queue.push(new Uint8Array(1_048_577)), 'PayloadTooLarge')
    queue.work((job) => job.data)
    const result = await pond.result(id)
    assert.ok(result instanceof Uint8Array && Buffer.compare(result, most) === 0)
  },

  'many large ones at once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const lengths: number[] = []
    queue.work((job) => void lengths.push(job.data.length))
    await Promise.all(numbers(20).map((n) => queue.push('x'.repeat(200_000 + n))))
    await queue.pushMany(numbers(20).map((n) => 'x'.repeat(200_020 + n)))
    await until(() => lengths.length === 40)
    assert.deepEqual(
      lengths.sort(),
      numbers(40).map((n) => 200_000 + n),
    )
  },

  'what a handler does to its data stays with it': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<Uint8Array | { list: number[] }>('q', { retry: { attempts: 1 } })
    queue.work((job) => {
      if (job.data instanceof Uint8Array) job.data.fill(9)
      else job.data.list.push(9)
      throw new Error('no')
    })
    const [bytes, list] = await queue.pushMany([new Uint8Array([1]), { list: [1] }])
    assert.ok(bytes && list)
    const stored = (await inState(pond, bytes.id, 'dead')).data
    assert.ok(stored instanceof Uint8Array)
    assert.equal(first([...stored]), 1)
    assert.deepEqual((await inState(pond, list.id, 'dead')).data, { list: [1] })
  },
})
