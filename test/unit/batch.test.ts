/** `batch`: by a function of the test's own, whose groups the test answers. */
import assert from 'node:assert/strict'
import { AsyncResource } from 'node:async_hooks'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Batched, type BatchOptions, batch, isMillpondError } from '../../src/index.ts'

/** A batch whose groups the test answers. */
function grouped(options?: BatchOptions<number>) {
  const groups: (PromiseWithResolvers<(string | Error)[]> & { items: number[] })[] = []
  const call = batch<number, string>((items) => {
    const group = { items: [...items], ...Promise.withResolvers<(string | Error)[]>() }
    groups.push(group)
    return group.promise
  }, options)
  const group = (index: number) => {
    const found = groups[index]
    assert.ok(found, `group ${index} was sent`)
    return found
  }
  return {
    call,
    answer: (index: number) => group(index).resolve(group(index).items.map((item) => `out ${item}`)),
    answerWith: (index: number, answers: (string | Error)[]) => group(index).resolve(answers),
    fail: (index: number, error: unknown) => group(index).reject(error),
    items: () => groups.map(({ items }) => items),
  }
}

const outs = (...items: number[]) => items.map((item) => `out ${item}`)

describe('batch', () => {
  test('alone, a call is sent in the same tick, without a timer and before any I/O', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate'] })
    const { call, items, answer } = grouped()
    const out = call(1)
    assert.deepEqual(items(), [])
    await new Promise<void>((resolve) => queueMicrotask(() => process.nextTick(resolve)))
    assert.deepEqual(items(), [[1]])
    answer(0)
    assert.equal(await out, 'out 1')
  })

  test('calls that come during a group form the next, in their order, each with its own answer', async () => {
    const { call, items, answer } = grouped()
    const first = call(1)
    await setImmediate()
    const rest = [5, 3, 4, 3].map((item) => call(item))
    await setImmediate()
    assert.deepEqual(items(), [[1]])
    answer(0)
    assert.equal(await first, 'out 1')
    await setImmediate()
    assert.deepEqual(items(), [[1], [5, 3, 4, 3]], 'equal items are not merged')
    answer(1)
    assert.deepEqual(await Promise.all(rest), outs(5, 3, 4, 3))
  })

  test('an Error among the answers rejects its own caller alone', async () => {
    const { call, answerWith } = grouped()
    const settled = Promise.allSettled([call(1), call(2), call(3)])
    await setImmediate()
    const error = new RangeError('2 is taken')
    answerWith(0, ['a', error, 'c'])
    assert.deepEqual(await settled, [
      { status: 'fulfilled', value: 'a' },
      { status: 'rejected', reason: error },
      { status: 'fulfilled', value: 'c' },
    ])
  })

  test('an answer that throws when it is read rejects its own caller alone', async () => {
    const hostile = new Proxy(['a', 'b', 'c'], {
      get(target, name, receiver) {
        if (name === '1') throw new RangeError('not to be read')
        return Reflect.get(target, name, receiver)
      },
    })
    const call = batch<number, string>(() => hostile)
    const settled = await Promise.allSettled([call(1), call(2), call(3)])
    assert.deepEqual(
      settled.map((each) => (each.status === 'fulfilled' ? each.value : String(each.reason))),
      ['a', 'RangeError: not to be read', 'c'],
    )
    await call.flushed()
    const one = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new RangeError('nor this')
        },
      },
    )
    // It is no error as far as can be told: it is the answer.
    assert.equal(await batch(() => [one])(1), one)
  })

  test('a function that waits for a call of its own is refused it, as nothing could go on', async () => {
    const tree: Record<string, string[]> = { root: ['left', 'right'], left: [], right: [] }
    const load: Batched<string, number> = batch(async (names: string[]) =>
      Promise.all(
        names.map(async (name) => {
          const below = await Promise.all((tree[name] ?? []).map((each) => load(each)))
          return below.reduce((sum, size) => sum + size, 1)
        }),
      ),
    )
    assert.equal(await load('left'), 1)
    await assert.rejects(load('root'), { code: 'BatchRecursion', message: /wait for its own end/ })
    assert.equal(await load('right'), 1, 'and the next group is sent all the same')
  })

  test('a call from inside the function goes on while another group may, and without anyone who waits', async () => {
    const depth: Batched<number, number> = batch(
      async (items: number[]) => Promise.all(items.map(async (item) => (item === 0 ? 0 : 1 + (await depth(item - 1))))),
      { concurrency: 3 },
    )
    assert.equal(await depth(2), 2)
    await assert.rejects(depth(3), { code: 'BatchRecursion' })
    assert.equal(await depth(2), 2)

    const left: (() => Promise<number>)[] = []
    const leaves: Batched<number, number> = batch((items: number[]) => {
      left.push(AsyncResource.bind(() => leaves(9)))
      return items
    })
    assert.equal(await leaves(1), 1)
    assert.equal(await left[0]?.(), 9, 'the group is over')
  })

  test('what the function throws, at once or later, reaches all of the group and no other', async () => {
    const { call, fail, answer } = grouped({ max: 2 })
    const settled = Promise.allSettled([call(1), call(2), call(3)])
    await setImmediate()
    fail(0, 'down')
    await setImmediate()
    answer(1)
    assert.deepEqual(await settled, [
      { status: 'rejected', reason: 'down' },
      { status: 'rejected', reason: 'down' },
      { status: 'fulfilled', value: 'out 3' },
    ])
    const error = new Error('at once')
    const throwing = batch(() => {
      throw error
    })
    await assert.rejects(throwing(1), error)
    await assert.rejects(throwing(2), error, 'and the next group is sent all the same')
  })

  test('an answer of another length, or none, is refused for all of the group', async () => {
    const { call, answerWith, answer } = grouped({ max: 2 })
    const settled = Promise.allSettled([call(1), call(2), call(3)])
    await setImmediate()
    answerWith(0, ['only one'])
    await setImmediate()
    answer(1)
    const [one, two, three] = await settled
    for (const result of [one, two]) {
      assert.ok(result?.status === 'rejected' && isMillpondError(result.reason, 'BatchMismatch'))
      assert.match(result.reason.message, /one element for each of its 2 items; got an array of 1/)
    }
    assert.deepEqual(three, { status: 'fulfilled', value: 'out 3' })
    const none = JSON.parse('null')
    await assert.rejects(batch(() => none)(1), { code: 'BatchMismatch', message: /got null/ })
  })

  test('a function that empties the array it got is held to the length it was given', async () => {
    const emptying = batch((items: number[]) => {
      items.length = 0
      return []
    })
    await assert.rejects(emptying(1), { code: 'BatchMismatch' })
    const draining = batch((items: number[]) => items.splice(0).map((item) => item * 2))
    assert.deepEqual(await Promise.all([draining(1), draining(2)]), [2, 4])
  })

  test('no group has more items, or more bytes, than it may', async () => {
    const { call, items, answer } = grouped({ max: 3, bytes: 10, size: (item) => item })
    const all = [4, 6, 1, 25, 1, 1, 1, 1].map((item) => call(item))
    for (let index = 0; index < 5; index++) {
      await setImmediate()
      answer(index)
    }
    assert.deepEqual(await Promise.all(all), outs(4, 6, 1, 25, 1, 1, 1, 1))
    assert.deepEqual(items(), [[4, 6], [1], [25], [1, 1, 1], [1]])
  })

  test('as many groups are under way as concurrency says, and the next goes when one ends', async () => {
    const { call, items, answer } = grouped({ max: 2, concurrency: 2 })
    const all = [1, 2, 3].map((item) => call(item))
    await setImmediate()
    assert.deepEqual(items(), [[1, 2], [3]], 'a full group and the rest go in the same tick')
    all.push(call(4))
    await setImmediate()
    assert.deepEqual(call.stats(), { waiting: 1, underWay: 2, groups: 2, items: 3 })
    answer(1)
    await setImmediate()
    assert.deepEqual(items(), [[1, 2], [3], [4]])
    answer(0)
    answer(2)
    assert.deepEqual(await Promise.all(all), outs(1, 2, 3, 4))
    assert.deepEqual(call.stats(), { waiting: 0, underWay: 0, groups: 3, items: 4 })
  })

  test('flushed resolves once nothing waits and nothing is under way', async () => {
    const { call, answer } = grouped({ max: 1 })
    await call.flushed()
    const all = Promise.all([call(1), call(2)])
    let flushed = false
    const flushing = call.flushed().then(() => {
      flushed = true
    })
    await setImmediate()
    answer(0)
    await setImmediate()
    assert.equal(flushed, false)
    answer(1)
    await flushing
    assert.deepEqual(await all, outs(1, 2))
  })

  test('what it cannot work with is refused', async () => {
    const fn = (items: number[]) => items
    const refused: [Record<string, unknown>, RegExp][] = [
      [{ max: 0 }, /max/],
      [{ concurrency: 0 }, /concurrency/],
      [{ within: 'soon' }, /within/],
      [{ bytes: 100 }, /bytes and size go together/],
      [{ size: () => 1 }, /bytes and size go together/],
      [{ dedupe: true }, /unknown option "dedupe"/],
    ]
    for (const [options, message] of refused) {
      assert.throws(() => batch(fn, options), { code: 'InvalidOption', message })
    }
    assert.throws(() => batch(JSON.parse('7')), { code: 'InvalidOption', message: /a function first; got a number/ })
    const call = batch(fn, { bytes: 100, size: (item) => (item === 1 ? Number.NaN : item) })
    const [nan, negative, other, mapped] = await Promise.allSettled([
      call(1),
      call(-1),
      call(2),
      // The classic: `map` passes the index as the second argument.
      ...[3].map(call as (item: number) => Promise<number>),
    ])
    for (const result of [nan, negative, mapped]) {
      assert.ok(result?.status === 'rejected' && isMillpondError(result.reason, 'InvalidOption'))
    }
    assert.deepEqual(other, { status: 'fulfilled', value: 2 })
  })
})

describe('batch: callers who leave', () => {
  test('one who leaves before its group is sent is taken out of it', async () => {
    const { call, items, answer } = grouped()
    const first = call(1)
    await setImmediate()
    const leaving = new AbortController()
    const reason = new Error('gone')
    const left = assert.rejects(call(2, { signal: leaving.signal }), reason)
    const rest = call(3, { signal: new AbortController().signal })
    leaving.abort(reason)
    await left
    assert.equal(call.stats().waiting, 1)
    answer(0)
    await first
    await setImmediate()
    assert.deepEqual(items(), [[1], [3]])
    answer(1)
    assert.equal(await rest, 'out 3')
  })

  test('if all of a group have left, none is sent, and the next call goes as ever', async () => {
    const { call, items, answer } = grouped()
    const leaving = new AbortController()
    const left = assert.rejects(call(1, { signal: leaving.signal }), { name: 'AbortError' })
    const flushing = call.flushed()
    leaving.abort()
    await left
    await flushing
    assert.deepEqual(items(), [])
    const next = call(2)
    await setImmediate()
    answer(0)
    assert.equal(await next, 'out 2')
  })

  test('one who leaves later is told at once; the others get their answers', async () => {
    const { call, answer } = grouped()
    const leaving = new AbortController()
    const left = call(1, { signal: leaving.signal })
    const stays = call(2)
    await setImmediate()
    leaving.abort()
    await assert.rejects(left, { name: 'AbortError' })
    answer(0)
    assert.equal(await stays, 'out 2')
  })

  test('a signal that was aborted before sends nothing; one that is no signal is refused', async () => {
    const { call, items } = grouped()
    await assert.rejects(call(1, { signal: AbortSignal.abort() }), { name: 'AbortError' })
    await assert.rejects(call(1, JSON.parse('{"signal": 1}')), { code: 'InvalidOption' })
    await setImmediate()
    assert.deepEqual(items(), [])
  })

  test('what they left behind is not held on to while a group hangs', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const call = batch<object, never>(() => new Promise(() => {}))
    void call({})
    await setImmediate()
    const leaving = new AbortController()
    const items = Array.from({ length: 100 }, () => ({}))
    const left = Promise.allSettled(items.map((item) => call(item, { signal: leaving.signal })))
    void call({})
    const watched = items.map((item) => new WeakRef(item))
    items.length = 0
    leaving.abort()
    await left
    await setImmediate()
    collect()
    const alive = watched.filter((item) => item.deref() !== undefined)
    assert.ok(alive.length <= 1, `${alive.length} of them are still held`)
  })

  test('they free their bytes and their place, and no listener stays on a signal', async () => {
    const { call, items, answer } = grouped({ max: 2, bytes: 10, size: (item) => item })
    const first = call(10)
    await setImmediate()
    const leaving = new AbortController()
    const left = Promise.allSettled([9, 8, 7].map((item) => call(item, { signal: leaving.signal })))
    const staying = new AbortController()
    const removed: string[] = []
    staying.signal.removeEventListener = (type: string) => void removed.push(type)
    const rest = [1, 2].map((item) => call(item, { signal: staying.signal }))
    leaving.abort()
    await left
    answer(0)
    await first
    await setImmediate()
    assert.deepEqual(items(), [[10], [1, 2]])
    answer(1)
    assert.deepEqual(await Promise.all(rest), outs(1, 2))
    assert.deepEqual(removed, ['abort', 'abort'])
  })
})

describe('batch: within', () => {
  /** The timers and the monotonic clock, moved on together. */
  const mockTime = (t: TestContext) => {
    let now = 1000
    t.mock.timers.enable({ apis: ['setTimeout'] })
    t.mock.method(performance, 'now', () => now)
    return async (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
      await setImmediate()
    }
  }

  test('a group waits to be filled for that long from its first call, no longer', async (t) => {
    const tick = mockTime(t)
    const { call, items, answer } = grouped({ max: 3, within: '20ms' })
    const all = [call(1)]
    await tick(15)
    all.push(call(2))
    await tick(4)
    assert.deepEqual(items(), [])
    await tick(1)
    assert.deepEqual(items(), [[1, 2]])
    answer(0)
    assert.deepEqual(await Promise.all(all), outs(1, 2))
    const next = call(3)
    await tick(19)
    assert.equal(items().length, 1, 'the next group has its own time')
    await tick(1)
    answer(1)
    await next
  })

  test('the time of a group that was full is not held against the next', async (t) => {
    const tick = mockTime(t)
    const { call, items, answer } = grouped({ max: 3, within: '20ms' })
    const all = [call(1)]
    await tick(5)
    all.push(call(2))
    await tick(5)
    all.push(call(3))
    await tick(0)
    answer(0)
    await Promise.all(all)
    const next = call(4)
    await tick(19)
    assert.deepEqual(items(), [[1, 2, 3]])
    await tick(1)
    answer(1)
    await next
  })

  test('one who leaves frees its bytes, and the flush', async (t) => {
    mockTime(t)
    const { call, items } = grouped({ within: '1h', bytes: 10, size: (item) => item })
    const leaving = new AbortController()
    const left = Promise.allSettled([4, 4].map((item) => call(item, { signal: leaving.signal })))
    await setImmediate()
    leaving.abort()
    await left
    const staying = new AbortController()
    const both = Promise.allSettled([5, 4].map((item) => call(item, { signal: staying.signal })))
    await setImmediate()
    assert.deepEqual(items(), [], 'there is room for one byte more')
    const flushing = call.flushed()
    staying.abort()
    await both
    await flushing
    assert.deepEqual(items(), [])
  })

  test('a full group goes at once, and the rest waits its time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { call, items, answer } = grouped({ max: 2, within: '1h', concurrency: 3 })
    const all = [1, 2, 3, 4, 5].map((item) => call(item))
    await setImmediate()
    assert.deepEqual(items(), [
      [1, 2],
      [3, 4],
    ])
    answer(0)
    answer(1)
    await setImmediate()
    assert.equal(items().length, 2)
    t.mock.timers.tick(3_600_000)
    await setImmediate()
    assert.deepEqual(items()[2], [5])
    answer(2)
    assert.deepEqual(await Promise.all(all), outs(1, 2, 3, 4, 5))
  })

  test('so does one that is full by its bytes', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { call, items, answer } = grouped({ within: '1h', bytes: 10, size: (item) => item })
    const all = [call(4)]
    await setImmediate()
    assert.deepEqual(items(), [])
    all.push(call(6))
    await setImmediate()
    assert.deepEqual(items(), [[4, 6]])
    answer(0)
    assert.deepEqual(await Promise.all(all), outs(4, 6))
  })

  test('what waited that long during a group goes as soon as it ends', async (t) => {
    const clock = t.mock.method(performance, 'now', () => 1000)
    const { call, items, answer } = grouped({ max: 2, within: '50ms' })
    const all = [1, 2].map((item) => call(item))
    await setImmediate()
    assert.deepEqual(items(), [[1, 2]])
    all.push(call(3))
    clock.mock.mockImplementation(() => 1050)
    answer(0)
    await Promise.all(all.slice(0, 2))
    await setImmediate()
    assert.deepEqual(items(), [[1, 2], [3]])
    answer(1)
    assert.deepEqual(await Promise.all(all), outs(1, 2, 3))
  })
})
