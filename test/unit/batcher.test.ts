import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { atEndOfTick, Batcher, type BatcherLimits } from '../../src/batch/batcher.ts'

/** A gather whose calls the test answers. */
function gathered(limits: BatcherLimits = { items: 500, bytes: 1_000_000 }) {
  const calls: (PromiseWithResolvers<string[]> & { items: number[] })[] = []
  const gather = new Batcher<number, string>((items) => {
    const call = { items, ...Promise.withResolvers<string[]>() }
    calls.push(call)
    return call.promise
  }, limits)
  const answer = (index: number) => {
    const call = calls[index]
    assert.ok(call, `call ${index} was made`)
    call.resolve(call.items.map((item) => `out ${item}`))
  }
  return {
    gather,
    answer,
    fail: (index: number, error: Error) => calls[index]?.reject(error),
    items: () => calls.map(({ items }) => items),
  }
}

describe('gather', () => {
  test('alone, an item goes out in the same turn, before any I/O', async () => {
    const { gather, items, answer } = gathered()
    const out = gather.add(1, 1)
    assert.deepEqual(items(), [])
    let turn = false
    const next = setImmediate().then(() => {
      turn = true
    })
    await new Promise<void>((resolve) => atEndOfTick(resolve))
    assert.equal(turn, false)
    assert.deepEqual(items(), [[1]])
    answer(0)
    assert.equal(await out, 'out 1')
    await next
  })

  test('items of the same turn go together, also those that come in its microtasks', async () => {
    const { gather, items, answer } = gathered()
    const outs = [gather.add(1, 1), gather.add(2, 1)]
    const later = Promise.resolve()
      .then(() => {})
      .then(() => gather.add(3, 1))
    await setImmediate()
    assert.deepEqual(items(), [[1, 2, 3]])
    answer(0)
    assert.deepEqual(await Promise.all([...outs, later]), ['out 1', 'out 2', 'out 3'])
  })

  test('items that come during a call wait for it, and go in one call', async () => {
    const { gather, items, answer } = gathered()
    const first = gather.add(1, 1)
    await setImmediate()
    const rest = [gather.add(2, 1)]
    await setImmediate()
    rest.push(gather.add(3, 1))
    await setImmediate()
    assert.deepEqual(items(), [[1]], 'one call at a time')
    answer(0)
    await first
    await setImmediate()
    assert.deepEqual(items(), [[1], [2, 3]])
    answer(1)
    assert.deepEqual(await Promise.all(rest), ['out 2', 'out 3'])
  })

  test('those who were just answered go along with the next call', async () => {
    const { gather, items, answer } = gathered()
    const again = gather.add(1, 1).then(() => gather.add(3, 1))
    await setImmediate()
    const other = gather.add(2, 1)
    answer(0)
    await setImmediate()
    assert.deepEqual(items(), [[1], [2, 3]])
    answer(1)
    assert.deepEqual(await Promise.all([other, again]), ['out 2', 'out 3'])
  })

  test('a call carries no more items than the limit', async () => {
    const { gather, items, answer } = gathered({ items: 3, bytes: 100 })
    const outs = [1, 2, 3, 4, 5, 6, 7].map((item) => gather.add(item, 1))
    for (let index = 0; index < 3; index++) {
      await setImmediate()
      answer(index)
    }
    assert.deepEqual(
      await Promise.all(outs),
      [1, 2, 3, 4, 5, 6, 7].map((item) => `out ${item}`),
    )
    assert.deepEqual(items(), [[1, 2, 3], [4, 5, 6], [7]])
  })

  test('nor more bytes, but for one item that has more alone', async () => {
    const { gather, items, answer } = gathered({ items: 10, bytes: 10 })
    const sizes = [4, 6, 1, 25, 3, 8, 10]
    const outs = sizes.map((bytes, index) => gather.add(index, bytes))
    for (let index = 0; index < 6; index++) {
      await setImmediate()
      answer(index)
    }
    await Promise.all(outs)
    assert.deepEqual(items(), [[0, 1], [2], [3], [4], [5], [6]])
  })

  test('of many, some of which leave between two calls, each that stays gets its own outcome, in order', async () => {
    const { gather, items, answer } = gathered({ items: 7, bytes: 1000 })
    const leaving = new AbortController()
    const numbers = Array.from({ length: 100 }, (_, item) => item)
    const outs = numbers.map((item) => gather.add(item, 1, item % 10 === 9 ? leaving.signal : undefined))
    const settled = Promise.allSettled(outs)
    const flushed = gather.flushed()
    for (let index = 0; ; index++) {
      await setImmediate()
      if (items().length === index) break
      // The first two calls carry 0 to 13, and of those that can leave 9 alone.
      if (index === 1) leaving.abort(new Error('left'))
      if (index === 2) assert.equal(gather.waiting, 100 - 14 - 9 - 7)
      answer(index)
    }
    await flushed
    assert.equal(gather.waiting, 0)
    const stayed = numbers.filter((item) => item % 10 !== 9 || item === 9)
    assert.deepEqual(items().flat(), stayed)
    for (const [item, out] of (await settled).entries()) {
      if (out.status === 'fulfilled') assert.equal(out.value, `out ${item}`)
      else assert.ok(item % 10 === 9, `${item} was rejected`)
    }
  })

  test('an error reaches exactly those whose call failed, and the next call is made', async () => {
    const { gather, fail, answer, items } = gathered({ items: 2, bytes: 100 })
    const outs = Promise.allSettled([1, 2, 3, 4, 5].map((item) => gather.add(item, 1)))
    await setImmediate()
    answer(0)
    await setImmediate()
    const error = new Error('no')
    fail(1, error)
    await setImmediate()
    answer(2)
    assert.deepEqual(await outs, [
      { status: 'fulfilled', value: 'out 1' },
      { status: 'fulfilled', value: 'out 2' },
      { status: 'rejected', reason: error },
      { status: 'rejected', reason: error },
      { status: 'fulfilled', value: 'out 5' },
    ])
    assert.deepEqual(items(), [[1, 2], [3, 4], [5]])
    const after = gather.add(6, 1)
    await setImmediate()
    answer(3)
    assert.equal(await after, 'out 6')
  })

  test('flushed waits for what is on its way, and for what waits behind it', async () => {
    const { gather, answer, fail } = gathered({ items: 1, bytes: 100 })
    await gather.flushed()
    const outs = Promise.allSettled([gather.add(1, 1), gather.add(2, 1)])
    let flushed = false
    const flushing = gather.flushed().then(() => {
      flushed = true
    })
    await setImmediate()
    answer(0)
    await setImmediate()
    assert.equal(flushed, false)
    fail(1, new Error('even if it fails'))
    await flushing
    await outs
    await gather.flushed()
  })

  describe('overlapping calls', () => {
    const overlapping = () => gathered({ items: 500, bytes: 1_000_000, overlap: true })
    const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i)
    const endOfTick = () => new Promise<void>((resolve) => atEndOfTick(resolve))

    test('many go in two calls, a turn apart, in their order', async () => {
      const { gather, items, answer } = overlapping()
      const outs = Promise.all(from(0, 41).map((item) => gather.add(item, 1)))
      await endOfTick()
      assert.deepEqual(items(), [from(0, 21)])
      await setImmediate()
      assert.deepEqual(items(), [from(0, 21), from(21, 20)])
      answer(1)
      answer(0)
      assert.deepEqual(
        await outs,
        from(0, 41).map((item) => `out ${item}`),
      )
      await gather.flushed()
    })

    test('a few go in one call, and a few wait for its end', async () => {
      const { gather, items, answer } = overlapping()
      const outs = from(0, 31).map((item) => gather.add(item, 1))
      await setImmediate()
      assert.deepEqual(items(), [from(0, 31)])
      outs.push(...from(31, 15).map((item) => gather.add(item, 1)))
      await setImmediate()
      assert.equal(items().length, 1)
      answer(0)
      await outs[0]
      await setImmediate()
      assert.deepEqual(items(), [from(0, 31), from(31, 15)])
      answer(1)
      await Promise.all(outs)
    })

    test('enough go beside the call that is under way, and never more than one such call', async () => {
      const { gather, items, answer } = overlapping()
      const outs = [gather.add(0, 1)]
      await setImmediate()
      outs.push(...from(1, 16).map((item) => gather.add(item, 1)))
      await setImmediate()
      assert.deepEqual(items(), [[0], from(1, 16)])
      outs.push(...from(17, 100).map((item) => gather.add(item, 1)))
      await setImmediate()
      assert.equal(items().length, 2)
      const flushed = gather.flushed()
      answer(0)
      await outs[0]
      await setImmediate()
      assert.deepEqual(items()[2], from(17, 100))
      answer(1)
      answer(2)
      await Promise.all(outs)
      await flushed
    })
  })

  describe('regrouping', () => {
    const regrouping = () => gathered({ items: 500, bytes: 1_000_000, regroup: true })
    const endOfTick = () => new Promise<void>((resolve) => atEndOfTick(resolve))

    test('those who were answered go in one call again, although they come back one by one', async (t) => {
      t.mock.method(performance, 'now', () => 0)
      const { gather, items, answer } = regrouping()
      const first = Promise.all([1, 2, 3].map((item) => gather.add(item, 1)))
      await endOfTick()
      answer(0)
      await first
      const second: Promise<string>[] = []
      for (const item of [4, 5, 6]) {
        await setImmediate()
        second.push(gather.add(item, 1))
      }
      // Nobody else is expected.
      await setImmediate()
      assert.deepEqual(items(), [
        [1, 2, 3],
        [4, 5, 6],
      ])
      answer(1)
      assert.deepEqual(await Promise.all(second), ['out 4', 'out 5', 'out 6'])
    })

    test('if they do not come back, the call goes without them, and the next at the end of its turn', async () => {
      const { gather, items, answer } = regrouping()
      const first = Promise.all([1, 2, 3].map((item) => gather.add(item, 1)))
      await endOfTick()
      answer(0)
      await first
      const alone = gather.add(4, 1)
      while (items().length < 2) await setImmediate()
      answer(1)
      await alone
      const next = gather.add(5, 1)
      await endOfTick()
      assert.deepEqual(items(), [[1, 2, 3], [4], [5]])
      answer(2)
      await next
      await gather.flushed()
    })
  })

  test('with patience, items go although the call before them gets no answer', async () => {
    const { gather, items, answer } = gathered({ items: 500, bytes: 1_000_000, overlap: true, patience: 5 })
    const first = gather.add(1, 1)
    await new Promise<void>((resolve) => atEndOfTick(resolve))
    const second = gather.add(2, 1)
    while (items().length < 2) await setImmediate()
    const third = gather.add(3, 1)
    while (items().length < 3) await setImmediate()
    assert.deepEqual(items(), [[1], [2], [3]])
    for (const index of [1, 2, 0]) answer(index)
    assert.deepEqual(await Promise.all([first, second, third]), ['out 1', 'out 2', 'out 3'])
  })
})
