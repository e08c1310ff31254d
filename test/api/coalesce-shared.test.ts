/** `coalesce` with `shared`: ponds on one store stand for processes. Death of a process is in `test/faults/shared-calls.test.ts`. */
import assert from 'node:assert/strict'
import { type CoalesceOptions, coalesce, type Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { aborted, onEachStore, refused } from './suite.ts'

interface Asked {
  url: string
}

/** A process with the function, whose calls the test answers. */
function processOf(pond: Millpond, options: Partial<CoalesceOptions<Asked, string>> = {}) {
  const calls: (PromiseWithResolvers<string> & { input: Asked; signal: AbortSignal })[] = []
  const get = coalesce<Asked, string>(
    (input, { signal }) => {
      const call = { input, signal, ...Promise.withResolvers<string>() }
      calls.push(call)
      return call.promise
    },
    { key: ({ url }) => url, shared: pond, name: 'headers', ...options },
  )
  const aboard = { yet: false }
  pond.on('pushed', () => {
    aboard.yet = true
  })
  return { get, calls, aboard }
}

/** The one call that either has made. */
async function onlyCall(...processes: ReturnType<typeof processOf>[]) {
  const made = () => processes.flatMap(({ calls }) => calls)
  await until(() => made().length > 0, 'a call to be made')
  const [call] = made()
  assert.ok(call)
  assert.equal(made().length, 1)
  return call
}

onEachStore('a shared call', {
  async 'is one call in one process'({ open }) {
    const one = processOf(await open())
    const all = [one.get({ url: 'a' }), one.get({ url: 'a' })]
    const call = await onlyCall(one)
    assert.deepEqual(call.input, { url: 'a' })
    call.resolve('answer')
    assert.deepEqual(await Promise.all(all), ['answer', 'answer'])
    const { flights, joined, calls, underWay } = one.get.stats()
    assert.deepEqual({ flights, joined, calls, underWay }, { flights: 1, joined: 1, calls: 1, underWay: 0 })
  },

  async 'takes keys of any length and kind apart'({ open }) {
    const pond = await open()
    const get = coalesce<string, string>((key) => `of ${key.length}`, { key: (key) => key, shared: pond, name: 'any' })
    const keys = ['', 'x\0y', `${'k'.repeat(300)}1`, `${'k'.repeat(300)}2`, 'é'.repeat(127), 'z'.repeat(254)]
    assert.deepEqual(
      await Promise.all(keys.map((key) => get(key))),
      keys.map((key) => `of ${key.length}`),
    )
    assert.equal(get.stats().calls, keys.length)
    // What the caller passes is the payload of a job.
    await assert.rejects(get('\ud800'), { code: 'PayloadNotEncodable' })
  },

  async 'passes nothing for nothing'({ open }) {
    const seen: unknown[] = []
    const get = coalesce(
      (input) => {
        seen.push(input)
      },
      { key: () => 'all', shared: await open(), name: 'none' },
    )
    assert.equal(await get(), undefined)
    assert.deepEqual(seen, [undefined])
  },

  async 'rejects for all with the error, which is not kept and not tried again'({ open }) {
    const one = processOf(await open())
    const all = [one.get({ url: 'a' }), one.get({ url: 'a' })].map((call) =>
      assert.rejects(call, { name: 'RangeError', message: 'upstream is down' }),
    )
    const call = await onlyCall(one)
    call.reject(new RangeError('upstream is down'))
    await Promise.all(all)
    const next = one.get({ url: 'a' })
    await until(() => one.calls.length === 2)
    one.calls[1]?.resolve('up again')
    assert.equal(await next, 'up again')
  },

  async 'has a time limit, also for a call that heeds no signal'({ open }) {
    const one = processOf(await open(), { timeout: 1000 })
    const error = await refused(one.get({ url: 'a' }), 'TimedOut')
    assert.match(error.message, /1000 ms/)
    await aborted((await onlyCall(one)).signal)
    const next = one.get({ url: 'a' })
    await until(() => one.calls.length === 2, 'the next caller to make a new call')
    one.calls[1]?.resolve('in time')
    assert.equal(await next, 'in time')
  },

  async 'is aborted when the last has left'({ open }) {
    const one = processOf(await open())
    const [first, second] = [new AbortController(), new AbortController()]
    const left = [first, second].map(({ signal }) =>
      assert.rejects(one.get({ url: 'a' }, { signal }), { name: 'AbortError' }),
    )
    const call = await onlyCall(one)
    first.abort()
    await left[0]
    assert.equal(call.signal.aborted, false)
    second.abort()
    await left[1]
    await aborted(call.signal)
    const next = one.get({ url: 'a' })
    await until(() => one.calls.length === 2)
    one.calls[1]?.resolve('again')
    assert.equal(await next, 'again')
  },

  async 'answers for as long as ttl says'({ open }) {
    const one = processOf(await open(), { ttl: '1m' })
    const first = one.get({ url: 'a' })
    ;(await onlyCall(one)).resolve('kept')
    assert.equal(await first, 'kept')
    assert.equal(await one.get({ url: 'a' }), 'kept')
    assert.equal(one.get.stats().reused, 1)
  },

  async 'tells what cannot travel'({ open }) {
    const pond = await open()
    const get = coalesce<unknown, unknown>((input) => (input === 'far' ? () => 1 : input), {
      key: String,
      shared: pond,
      name: 'odd',
    })
    await refused(
      get(() => 1),
      'PayloadNotEncodable',
    )
    await assert.rejects(get('far'), { code: 'PayloadNotEncodable' })
    assert.equal(get.stats().calls, 1)
  },

  async 'cannot be joined once the pond is closed, and those aboard are told'({ open }) {
    const pond = await open()
    const one = processOf(pond)
    const waiting = refused(one.get({ url: 'a' }), 'Closed')
    await onlyCall(one)
    await pond.close({ timeout: 0 })
    await waiting
    await refused(one.get({ url: 'a' }), 'Closed')
  },

  async 'wants a pond and a name, both or neither'({ open }) {
    const pond = await open()
    const make = (options: object) => () => coalesce(() => 1, { key: () => 'k', ...options })
    await refused(make({ shared: pond }), 'InvalidOption', /come together/)
    await refused(make({ name: 'n' }), 'InvalidOption', /come together/)
    await refused(make({ shared: {}, name: 'n' }), 'InvalidOption', /pond/)
    await refused(make({ shared: pond, name: 'a b' }), 'InvalidOption', /characters/)
  },
})

onEachStore('a shared call that was cleared', {
  async 'answers those who are in it; who comes after gets, and keeps, another answer'({ open }) {
    const one = processOf(await open(), { ttl: '1m' })
    const before = one.get({ url: 'a' })
    const old = await onlyCall(one)
    one.get.clear('a')
    const after = one.get({ url: 'a' })
    const other = one.get({ url: 'b' })
    await until(() => one.calls.length === 2, 'the call of another key')
    one.calls[1]?.resolve('B')
    assert.equal(await other, 'B')
    old.resolve('old')
    assert.equal(await before, 'old')
    await until(() => one.calls.length === 3, 'a new call')
    one.calls[2]?.resolve('new')
    assert.equal(await after, 'new')
    assert.equal(await one.get({ url: 'a' }), 'new')
    assert.equal(one.calls.length, 3)
  },

  async 'also by clearAll, before the store has heard of it, and twice'({ open }) {
    const one = processOf(await open())
    const before = one.get({ url: 'a' })
    one.get.clearAll()
    const after = one.get({ url: 'a' })
    one.get.clear('a')
    const last = one.get({ url: 'a' })
    ;(await onlyCall(one)).resolve('old')
    assert.equal(await before, 'old')
    await until(() => one.calls.length === 2, 'a new call')
    one.calls[1]?.resolve('new')
    // Those who came after both clears may share the one that was begun after both.
    assert.deepEqual(await Promise.all([after, last]), ['new', 'new'])
    assert.equal(one.calls.length, 2)
  },

  async 'may fail, or be left by everyone: who comes after gets an answer'({ open }) {
    const one = processOf(await open())
    const failing = assert.rejects(one.get({ url: 'a' }), { message: 'down' })
    const old = await onlyCall(one)
    one.get.clear('a')
    const leaving = new AbortController()
    const left = assert.rejects(one.get({ url: 'a' }, { signal: leaving.signal }), { name: 'AbortError' })
    old.reject(new Error('down'))
    await failing
    await until(() => one.calls.length === 2)
    one.get.clear('a')
    const last = one.get({ url: 'a' })
    leaving.abort()
    await left
    await until(() => one.calls.length === 3, 'another call for who came last')
    one.calls[2]?.resolve('new')
    assert.equal(await last, 'new')
  },

  async 'and is made here for another process, keeps its answer from those who come here after'({ open }) {
    const pond = await open()
    const one = processOf(pond)
    // As another process pushes it.
    const { id } = await pond.queue('coalesce/headers').push({ input: { url: 'a' } }, { key: '=a' })
    const old = await onlyCall(one)
    one.get.clear('a')
    one.aboard.yet = false
    const after = one.get({ url: 'a' })
    await until(() => one.aboard.yet)
    old.resolve('old')
    assert.equal(await pond.result(id), 'old')
    await until(() => one.calls.length === 2, 'a new call')
    one.calls[1]?.resolve('new')
    assert.equal(await after, 'new')
  },

  async 'while its callers were on their way to it, is theirs all the same'({ open }) {
    const pond = await open()
    const one = processOf(pond)
    await pond.queue('coalesce/headers').push({ input: { url: 'a' } }, { key: '=a' })
    const old = await onlyCall(one)
    one.aboard.yet = false
    const before = one.get({ url: 'a' })
    one.get.clear('a')
    await until(() => one.aboard.yet)
    old.resolve('old')
    assert.equal(await before, 'old')
    assert.equal(one.calls.length, 1)
  },

  async 'and never ends, is waited for until the time limit, also if all who were in it have left'({ open }) {
    const pond = await open()
    const queue = pond.queue('coalesce/headers')
    const { id } = await queue.push({ input: { url: 'a' } }, { key: '=a', delay: '1h' })
    const one = processOf(pond, { timeout: 500 })
    const leaving = new AbortController()
    const left = assert.rejects(one.get({ url: 'a' }, { signal: leaving.signal }), { name: 'AbortError' })
    one.get.clear('a')
    leaving.abort()
    await left
    await refused(one.get({ url: 'a' }), 'TimedOut')
    await pond.cancel(id)
    const after = one.get({ url: 'a' })
    ;(await onlyCall(one)).resolve('at last')
    assert.equal(await after, 'at last')
  },
})

onEachStore(
  'a shared call of many processes',
  {
    async 'is one call, by any of them'({ open }) {
      const processes = [processOf(await open()), processOf(await open()), processOf(await open())]
      const all = processes.flatMap(({ get }) => [get({ url: 'a' }), get({ url: 'a' })])
      await until(() => processes.every(({ aboard }) => aboard.yet))
      const call = await onlyCall(...processes)
      call.resolve('for all')
      assert.deepEqual(new Set(await Promise.all(all)), new Set(['for all']))
      assert.equal(
        processes.reduce((sum, { get }) => sum + get.stats().calls, 0),
        1,
      )
    },

    async 'that fails rejects for all of them'({ open }) {
      const processes = [processOf(await open()), processOf(await open())]
      const all = processes.map(({ get }) => assert.rejects(get({ url: 'a' }), { message: 'down' }))
      await until(() => processes.every(({ aboard }) => aboard.yet))
      const call = await onlyCall(...processes)
      call.reject(new Error('down'))
      await Promise.all(all)
    },

    async 'goes on elsewhere when those who began it leave'({ open }) {
      const [one, two] = [processOf(await open()), processOf(await open())]
      const leaving = new AbortController()
      const left = assert.rejects(one.get({ url: 'a' }, { signal: leaving.signal }), { name: 'AbortError' })
      const first = await onlyCall(one, two)
      const stays = two.get({ url: 'a' })
      await until(() => two.aboard.yet)
      leaving.abort()
      await left
      await aborted(first.signal)
      await until(() => one.calls.length + two.calls.length === 2, 'another call')
      ;[...one.calls, ...two.calls].find((call) => call !== first)?.resolve('for who stayed')
      assert.equal(await stays, 'for who stayed')
    },

    async 'is taken over from a process that closes'({ open }) {
      const first = await open()
      const one = processOf(first)
      const own = one.get({ url: 'a' }).catch(() => {})
      await onlyCall(one)
      const two = processOf(await open())
      const stays = two.get({ url: 'a' })
      await until(() => two.aboard.yet)
      await first.close({ timeout: 0 })
      await own
      await until(() => two.calls.length === 1, 'the other process to make the call')
      two.calls[0]?.resolve('taken over')
      assert.equal(await stays, 'taken over')
    },
  },
  'shared',
)
