/** `coalesce`: by a function of the test's own, whose calls the test answers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type CoalesceOptions, coalesce, isMillpondError } from '../../src/index.ts'
import { mockTime } from './mock-time.ts'

interface Answer {
  text: string
}

/** A coalesced function whose calls the test answers. */
function shared(options: Partial<CoalesceOptions<string, Answer>> = {}) {
  const calls: (PromiseWithResolvers<Answer> & { input: string; signal: AbortSignal })[] = []
  const get = coalesce<string, Answer>(
    (input, { signal }) => {
      const call = { input, signal, ...Promise.withResolvers<Answer>() }
      calls.push(call)
      return call.promise
    },
    { key: (input) => input, ...options },
  )
  const call = (index: number) => {
    const found = calls[index]
    assert.ok(found, `call ${index} was made`)
    return found
  }
  return {
    get,
    call,
    answer: (index: number, text = 'answer') => call(index).resolve({ text }),
    inputs: () => calls.map(({ input }) => input),
  }
}

describe('coalesce: one flight per key', () => {
  test('calls with the same key share one, others have their own', async () => {
    const { get, answer, inputs } = shared()
    const all = [get('a'), get('b'), get('a'), get('a')]
    assert.deepEqual(inputs(), ['a', 'b'], 'made at once')
    answer(1, 'B')
    answer(0, 'A')
    const answers = await Promise.all(all)
    assert.deepEqual(
      answers.map(({ text }) => text),
      ['A', 'B', 'A', 'A'],
    )
    assert.equal(answers[0], answers[2], 'the same object')
    assert.deepEqual(get.stats(), {
      flights: 2,
      calls: 2,
      joined: 2,
      failed: 0,
      timedOut: 0,
      aborted: 0,
      reused: 0,
      underWay: 0,
      kept: 0,
    })
  })

  test('once it has landed, the next call makes another', async () => {
    const { get, answer, inputs } = shared()
    const first = get('a')
    answer(0)
    await first
    const second = get('a')
    assert.deepEqual(inputs(), ['a', 'a'])
    answer(1, 'anew')
    assert.equal((await second).text, 'anew')
  })

  test('a thousand who cannot leave share twenty promises; each who can has one', async () => {
    const { get, answer, inputs } = shared()
    const { signal } = new AbortController()
    const all = Array.from({ length: 1000 }, () => get('a'))
    const leavable = Array.from({ length: 100 }, () => get('a', { signal }))
    assert.equal(new Set(all).size, 20)
    assert.equal(new Set(leavable).size, 100)
    answer(0)
    assert.equal(new Set(await Promise.all([...all, ...leavable])).size, 1)
    assert.equal(inputs().length, 1)
    assert.equal(get.stats().joined, 1099)
  })

  test('many are told in stretches, so that whoever asks anew is not behind all of them; leaving is possible until then', async () => {
    const { get, call, answer, inputs } = shared()
    const leaving = new AbortController()
    const { signal } = new AbortController()
    const told: number[] = []
    const all = Array.from({ length: 175 }, async (_, index) => {
      await get('a', index < 120 ? undefined : { signal: index === 174 ? leaving.signal : signal })
      told.push(index)
    })
    answer(0)
    await setImmediate()
    assert.equal(told.length, 50)
    const anew = get('a')
    assert.equal(inputs().length, 2)
    leaving.abort(new Error('gone'))
    await assert.rejects(all.pop() ?? Promise.resolve(), /gone/)
    await Promise.all(all)
    assert.deepEqual(told, [...all.keys()], 'those who cannot leave first, each in the order in which they came')
    assert.equal(call(0).signal.aborted, false)
    answer(1, 'anew')
    assert.equal((await anew).text, 'anew')
  })

  test('an error, thrown at once or later, goes to everyone who waits and is not kept', async (t) => {
    mockTime(t)
    const { get, call, answer } = shared({ ttl: '1h' })
    const { signal } = new AbortController()
    const settled = Promise.allSettled([get('a'), get('a', { signal }), get('a')])
    const error = new Error('down')
    call(0).reject(error)
    assert.deepEqual(await settled, Array(3).fill({ status: 'rejected', reason: error }))
    const next = get('a')
    answer(1, 'up')
    assert.equal((await next).text, 'up')
    assert.deepEqual([get.stats().failed, get.stats().flights], [1, 2])

    let made = 0
    const throwing = coalesce(
      () => {
        made++
        throw error
      },
      { key: () => '', ttl: '1h' },
    )
    await assert.rejects(throwing(), error)
    await assert.rejects(throwing(), error)
    assert.equal(made, 2)
  })

  test('a function may answer at once, take nothing, and answer undefined', async (t) => {
    mockTime(t)
    let made = 0
    const get = coalesce(
      () => {
        made++
      },
      { key: () => '', ttl: 10 },
    )
    assert.deepEqual(await Promise.all([get(), get()]), [undefined, undefined])
    assert.equal(await get(), undefined)
    assert.equal(made, 1)
  })

  test('a call that asks for its own key waits for itself until its time is over, and does not recur', async (t) => {
    const tick = mockTime(t)
    let made = 0
    const get = coalesce(
      (): Promise<unknown> => {
        made++
        return get()
      },
      { key: () => '', timeout: '1s' },
    )
    const own = assert.rejects(get(), { code: 'TimedOut' })
    tick(1000)
    await own
    assert.equal(made, 1)
  })

  test('keys are any text, those of objects too', async () => {
    const get = coalesce(async (input: string) => input, { key: (input) => input })
    const names = ['', '__proto__', 'constructor', 'toString']
    assert.deepEqual(await Promise.all(names.map((name) => get(name))), names)
  })

  test('what it cannot work with is refused', async () => {
    const fn = async (input: string) => input
    const key = (input: string) => input
    const refused: [Record<string, unknown>, RegExp][] = [
      [{}, /key is missing/],
      [{ key: 'url' }, /key must be a function/],
      [{ key, timeout: 0 }, /timeout/],
      [{ key, ttl: 'soon' }, /ttl/],
      [{ key, maxEntries: 0 }, /maxEntries/],
      [{ key, copy: true }, /copy must be a function/],
      [{ key, shared: 'pond' }, /shared must be a pond/],
      [{ key, share: true }, /unknown option "share"/],
    ]
    for (const [options, message] of refused) {
      assert.throws(() => coalesce(fn, Object.assign({ key }, { key: undefined }, options)), {
        code: 'InvalidOption',
        message,
      })
    }
    assert.throws(() => coalesce(JSON.parse('7'), { key }), {
      code: 'InvalidOption',
      message: /a function first; got a number/,
    })
    const keyless = coalesce(fn, { key: () => JSON.parse('null') })
    await assert.rejects(keyless('a'), { code: 'InvalidOption', message: /a key must be a text; got null/ })
    const get = coalesce(fn, { key })
    await assert.rejects(get('a', JSON.parse('3')), { code: 'InvalidOption' })
    await assert.rejects(get('a', JSON.parse('{"timeout": 3}')), { code: 'InvalidOption' })
    assert.throws(() => get.clear(JSON.parse('null')), { code: 'InvalidOption' })
    const error = new Error('no key')
    const thrower = coalesce(fn, {
      key: () => {
        throw error
      },
    })
    await assert.rejects(thrower('a'), error)
    assert.equal(get.stats().flights, 0)
  })
})

describe('coalesce: callers who leave', () => {
  test('one leaves, the flight goes on for the others', async () => {
    const { get, call, answer } = shared()
    const leaving = new AbortController()
    const reason = new Error('gone')
    const left = assert.rejects(get('a', { signal: leaving.signal }), reason)
    const stays = get('a')
    leaving.abort(reason)
    await left
    assert.equal(call(0).signal.aborted, false)
    answer(0)
    assert.equal((await stays).text, 'answer')
  })

  test('when the last has left the call is aborted, and the next caller gets a flight of its own', async () => {
    const { get, call, answer } = shared()
    const leaving = [new AbortController(), new AbortController()]
    const left = leaving.map(({ signal }) => assert.rejects(get('a', { signal }), { name: 'AbortError' }))
    leaving[0]?.abort()
    assert.equal(call(0).signal.aborted, false)
    leaving[1]?.abort()
    assert.equal(call(0).signal.aborted, true)
    assert.equal(call(0).signal.reason.name, 'AbortError')
    const next = get('a')
    // What the aborted call says now is heard by nobody.
    call(0).reject(new Error('aborted'))
    await Promise.all(left)
    answer(1, 'next')
    assert.equal((await next).text, 'next')
    const { aborted, failed, flights, underWay } = get.stats()
    assert.deepEqual({ aborted, failed, flights, underWay }, { aborted: 1, failed: 0, flights: 2, underWay: 0 })
  })

  test('one who comes and cannot leave holds the flight, whoever else leaves', async () => {
    const { get, call, answer } = shared()
    const leaving = new AbortController()
    const left = assert.rejects(get('a', { signal: leaving.signal }), { name: 'AbortError' })
    const stays = get('a')
    leaving.abort()
    await left
    assert.equal(call(0).signal.aborted, false)
    answer(0)
    await stays
  })

  test('a call that has answered is not aborted by one who leaves before being told', async () => {
    const { get, call, answer } = shared()
    const leaving = new AbortController()
    const first = get('a')
    const left = assert.rejects(get('a', { signal: leaving.signal }), { name: 'AbortError' })
    answer(0)
    await first
    leaving.abort()
    await left
    assert.equal(call(0).signal.aborted, false)
    assert.equal(get.stats().aborted, 0)
  })

  test('a signal that was aborted before starts nothing', async () => {
    const { get, inputs } = shared()
    await assert.rejects(get('a', { signal: AbortSignal.abort() }), { name: 'AbortError' })
    assert.deepEqual(inputs(), [])
  })

  test('no listener stays on a signal after the landing', async () => {
    const { get, answer } = shared()
    const { signal } = new AbortController()
    const listening: string[] = []
    signal.addEventListener = () => void listening.push('added')
    signal.removeEventListener = () => void listening.push('removed')
    const got = get('a', { signal })
    answer(0)
    await got
    assert.deepEqual(listening, ['added', 'removed'])
  })
})

describe('coalesce: the time limit', () => {
  test('everyone gets TimedOut, the call is aborted, and the next caller makes another', async (t) => {
    const tick = mockTime(t)
    const { get, call, answer } = shared({ timeout: '2s' })
    const { signal } = new AbortController()
    const settled = Promise.allSettled([get('a'), get('a', { signal })])
    tick(1999)
    assert.equal(call(0).signal.aborted, false)
    tick(1)
    for (const result of await settled) {
      assert.ok(result.status === 'rejected' && isMillpondError(result.reason, 'TimedOut'))
      assert.equal(call(0).signal.reason, result.reason)
    }
    const next = get('a')
    answer(0, 'too late')
    await setImmediate()
    answer(1, 'in time')
    assert.equal((await next).text, 'in time')
    tick(10_000)
    assert.equal(call(1).signal.aborted, false, 'a landed flight has no timer left')
    assert.deepEqual([get.stats().timedOut, get.stats().failed], [1, 0])
  })

  test('it is 30 s unless given', async (t) => {
    const tick = mockTime(t)
    const { get } = shared()
    const late = assert.rejects(get('a'), { code: 'TimedOut' })
    tick(29_999)
    assert.equal(get.stats().underWay, 1)
    tick(1)
    await late
  })
})

describe('coalesce: ttl', () => {
  test('an answer is reused until it is over, counted from the landing', async (t) => {
    const tick = mockTime(t)
    const { get, answer, inputs } = shared({ ttl: '1s' })
    const first = get('a')
    tick(500)
    answer(0)
    const landed = await first
    tick(999)
    assert.equal(await get('a'), landed)
    assert.equal(await get('a', { signal: new AbortController().signal }), landed)
    assert.deepEqual([get.stats().reused, get.stats().kept], [2, 1])
    tick(1)
    assert.equal(get.stats().kept, 0, 'removed by itself')
    const second = get('a')
    assert.equal(inputs().length, 2)
    answer(1, 'anew')
    assert.equal((await second).text, 'anew')
  })

  test('whoever asks late in that time has it renewed, once, and waits for nothing', async (t) => {
    const tick = mockTime(t)
    const { get, answer, call, inputs } = shared({ ttl: '1s' })
    const first = get('a')
    tick(100)
    answer(0, 'first')
    await first
    tick(799)
    await get('a')
    assert.equal(inputs().length, 1, 'two flights of 100 ms before the end')
    tick(1)
    assert.equal((await get('a')).text, 'first')
    assert.equal((await get('a')).text, 'first')
    assert.equal(inputs().length, 2)
    tick(100)
    answer(1, 'second')
    await call(1).promise
    assert.equal((await get('a')).text, 'second')
    tick(999)
    assert.equal((await get('a')).text, 'second', 'for as long again')
    assert.deepEqual([get.stats().reused, get.stats().flights, get.stats().joined], [5, 3, 0])
  })

  test('a renewal that fails is told to nobody, keeps the old answer for its time, and is not tried again in it', async (t) => {
    const tick = mockTime(t)
    const { get, answer, call, inputs } = shared({ ttl: '1s' })
    const first = get('a')
    answer(0, 'first')
    await first
    tick(999)
    await get('a')
    tick(0.5)
    assert.equal(inputs().length, 1, 'a call that takes no time is renewed as late')
    const slow = get('b')
    tick(600)
    answer(1, 'slow')
    await slow
    tick(500)
    await get('b')
    assert.deepEqual(inputs(), ['a', 'b', 'b'], 'never before half of the time')
    call(2).reject(new Error('upstream'))
    await assert.rejects(call(2).promise)
    await setImmediate()
    assert.equal((await get('b')).text, 'slow')
    assert.equal(inputs().length, 3)
    tick(500)
    const after = get('b')
    assert.equal(inputs().length, 4)
    answer(3, 'after')
    assert.equal((await after).text, 'after')
  })

  test('it is over when the clock says so, though the timer be late', async (t) => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const { get, answer, inputs } = shared({ ttl: '1h' })
    const first = get('a')
    answer(0)
    await first
    now = 3_600_000
    const second = get('a')
    assert.equal(inputs().length, 2)
    answer(1)
    await second
  })

  test('there are never more answers than maxEntries; the oldest goes', async (t) => {
    mockTime(t)
    const { get, answer, inputs } = shared({ ttl: '1h', maxEntries: 2 })
    for (const [index, input] of ['a', 'b', 'c'].entries()) {
      const got = get(input)
      answer(index, input)
      await got
    }
    assert.equal(get.stats().kept, 2)
    assert.equal((await get('c')).text, 'c')
    assert.equal((await get('b')).text, 'b')
    const again = get('a')
    assert.deepEqual(inputs(), ['a', 'b', 'c', 'a'])
    answer(3)
    await again
  })

  test('with copy each caller gets an object of its own, and the kept one stays as it was', async (t) => {
    mockTime(t)
    const { get, answer } = shared({ ttl: '1h', copy: structuredClone })
    const both = Promise.all([get('a'), get('a')])
    answer(0, 'whole')
    const [one, two] = await both
    assert.ok(one && two)
    assert.notEqual(one, two)
    one.text = 'changed'
    assert.equal(two.text, 'whole')
    assert.equal((await get('a')).text, 'whole')
  })
})

describe('coalesce: clear', () => {
  test('what is kept is forgotten', async (t) => {
    mockTime(t)
    const { get, answer, inputs } = shared({ ttl: '1h' })
    const both = [get('a'), get('b')]
    answer(0)
    answer(1)
    await Promise.all(both)
    get.clear('a')
    await get('b')
    const again = get('a')
    assert.deepEqual(inputs(), ['a', 'b', 'a'])
    answer(2)
    await again
    get.clearAll()
    assert.equal(get.stats().kept, 0)
  })

  test('a flight under way answers those who are in it, and is not kept or shared with those who come later', async (t) => {
    mockTime(t)
    const { get, answer, inputs } = shared({ ttl: '1h' })
    const before = get('a')
    get.clear('a')
    const after = get('a')
    assert.deepEqual(inputs(), ['a', 'a'])
    answer(1, 'new')
    assert.equal((await after).text, 'new')
    answer(0, 'old')
    assert.equal((await before).text, 'old')
    assert.equal((await get('a')).text, 'new', 'though the old one landed last')

    get.clearAll()
    const third = get('a')
    get.clearAll()
    answer(2, 'third')
    await third
    assert.equal(get.stats().kept, 0)
  })

  test('a cleared flight is aborted all the same when its last has left, and leaves the new one alone', async () => {
    const { get, call, answer } = shared()
    const leaving = new AbortController()
    const left = assert.rejects(get('a', { signal: leaving.signal }), { name: 'AbortError' })
    get.clear('a')
    const after = get('a')
    leaving.abort()
    await left
    assert.equal(call(0).signal.aborted, true)
    assert.equal(call(1).signal.aborted, false)
    const joined = get('a')
    answer(1)
    assert.equal(await joined, await after)
  })
})
