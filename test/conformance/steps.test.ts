/** Journals and parks: their bounds, and what happens where calls meet. */

import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import type { Encoded, Entry, Hold, NewEntry, Park } from '../../src/values/jobs/records.ts'
import { needs } from '../../src/values/operations/capabilities.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { newJob } from '../support/jobs.ts'
import { hear } from './bells.ts'
import { claim, conformance, everyWay, first, running } from './suite.ts'

const MIB = 1024 * 1024
const { entries: MOST_ENTRIES, bytes: MOST_BYTES, page: PAGE } = DEFAULTS.steps

const entry = (name: string, body: Encoded | null = null): NewEntry => ({ name, meta: '{}', body })
const text = (bytes: number): Encoded => ({ encoding: 'json', body: 'é'.repeat(bytes / 2) + 'x'.repeat(bytes % 2) })
const parked = (hold: Hold, park: Partial<Park> = {}) => ({
  ...hold,
  park: { until: null, signals: 0, after: [], entries: [], reason: '{}', ...park },
})

async function add(store: Store, hold: Hold, entries: readonly NewEntry[]): Promise<string> {
  return first(await store.operations.journal({ queue: 'q', items: [{ ...hold, entries }] }))
}
async function park(store: Store, hold: Hold, given: Partial<Park> = {}): Promise<string> {
  return first(await store.operations.release({ queue: 'q', items: [parked(hold, given)] }))
}
async function signal(store: Store, id: string, name = '!go/1'): Promise<string> {
  return first(await store.operations.signal({ items: [{ id, ...entry(name) }] })).status
}
async function find(store: Store, id: string) {
  const record = first(await store.operations.find({ ids: [id] }))
  assert.ok(record)
  return record
}

/** The whole journal of a job. No answer holds much more than a page, and each has something new. */
async function read(store: Store, id: string): Promise<Entry[]> {
  const all: Entry[] = []
  for (;;) {
    const page = first(await store.operations.entries({ items: [{ id, after: all.at(-1)?.n ?? 0 }] }))
    assert.ok(page)
    assert.ok(bytesOf(page.entries) <= PAGE + MIB, 'an answer holds about 4 MiB')
    all.push(...page.entries)
    if (!page.more) return all
    assert.ok(page.entries.length > 0, 'an answer that is not the last one has an entry')
  }
}
const bytesOf = (entries: readonly Entry[]): number =>
  entries.reduce((sum, { body }) => sum + (body === null ? 0 : Buffer.byteLength(body.body)), 0)

conformance('steps', {
  'a journal takes 10,000 entries and no more, from whatever side': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    const names = Array.from({ length: MOST_ENTRIES - 1 }, (_, i) => `=${i}`)
    for (let at = 0; at < names.length; at += 500)
      assert.equal(
        await add(
          store,
          hold,
          names.slice(at, at + 500).map((name) => entry(name)),
        ),
        'ok',
      )
    assert.equal(await add(store, hold, [entry('=last'), entry('=over')]), 'full')
    assert.equal(await add(store, hold, [entry('=0'), entry('=last'), entry('=last')]), 'ok')
    assert.equal(await add(store, hold, [entry('=over')]), 'full')
    assert.equal(await add(store, hold, [entry('=0'), entry('=last')]), 'ok', 'those are there')
    assert.equal(await signal(store, hold.id), 'full')
    assert.equal(await park(store, hold, { entries: [entry('=over')] }), 'full')
    const { state, journal } = await find(store, hold.id)
    assert.deepEqual({ state, journal }, { state: 'running', journal: MOST_ENTRIES })
    assert.deepEqual(
      (await read(store, hold.id)).map(({ name }) => name),
      [...names, '=last'],
    )
    assert.equal(await park(store, hold, { until: 0 }), 'ok')
    assert.equal(first((await claim(store)).jobs).journal, MOST_ENTRIES)
  },

  'a journal takes 16 MiB and no byte more': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    let left = MOST_BYTES
    for (let i = 10; i < 25; i++) {
      assert.equal(await add(store, hold, [entry(`=${i}`, text(MIB))]), 'ok')
      left -= MIB + 5
    }
    assert.equal(await add(store, hold, [entry('=e', text(left - 3))]), 'full')
    assert.equal(await add(store, hold, [entry('=e', text(left - 4))]), 'ok')
    assert.equal(await add(store, hold, [entry('=f')]), 'full')
    assert.equal(await signal(store, hold.id), 'full')
    const all = await read(store, hold.id)
    assert.equal(all.length, 16)
    assert.equal(all.at(-1)?.body?.body, text(left - 4).body)
  },

  'an answer holds about 4 MiB of all journals together': async (store) => {
    needs(store, 'steps', 'this check')
    const holds = [await running(store), await running(store)]
    for (const hold of holds)
      for (let i = 0; i < 6; i++) assert.equal(await add(store, hold, [entry(`=${i}`, text(MIB))]), 'ok')
    const items = holds.map(({ id }) => ({ id, after: 0 }))
    const [one, other] = await store.operations.entries({ items })
    assert.ok(one && other)
    assert.ok(one.more && other.more && one.entries.length > 0)
    assert.ok(bytesOf([...one.entries, ...other.entries]) <= PAGE + MIB)
    for (const { id } of holds) assert.equal((await read(store, id)).length, 6)
  },

  'bytes are bytes, metas are texts, and both belong to the caller': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    const body = new Uint8Array([0, 255, 123])
    const adding = add(store, hold, [
      { name: '=é', meta: '{"a":"\u2028\\u0000"}', body: { encoding: 'bytes', body } },
      entry('=json', { encoding: 'json', body: '"\\u0000é🌊"' }),
      entry('=m', { encoding: 'msgpack', body: new Uint8Array([192]) }),
    ])
    body.fill(1)
    assert.equal(await adding, 'ok')
    const all = await read(store, hold.id)
    assert.deepEqual(
      all.map(({ name, meta }) => [name, meta]),
      [
        ['=é', '{"a":"\u2028\\u0000"}'],
        ['=json', '{}'],
        ['=m', '{}'],
      ],
    )
    assert.deepEqual(
      all.map((each) => each.body),
      [
        { encoding: 'bytes', body: new Uint8Array([0, 255, 123]) },
        { encoding: 'json', body: '"\\u0000é🌊"' },
        { encoding: 'msgpack', body: new Uint8Array([192]) },
      ],
    )
  },

  'of two entries with a name the first one is kept, in one call as in two': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    const of = (body: string) => entry('=a', { encoding: 'json', body })
    const entries = [of('1'), of('2'), entry('=b')]
    const items = [
      { ...hold, entries },
      { ...hold, entries: [of('3'), entry('=c')] },
    ]
    assert.deepEqual(await store.operations.journal({ queue: 'q', items }), ['ok', 'ok'])
    const all = await read(store, hold.id)
    assert.deepEqual(
      all.map(({ name, body }) => [name, body?.body]),
      [
        ['=a', '1'],
        ['=b', undefined],
        ['=c', undefined],
      ],
    )
  },

  'a signal that meets the park of its job is not lost': async (store) => {
    needs(store, 'steps', 'this check')
    for (let round = 0; round < 20; round++) {
      const hold = await running(store)
      const [ended, status] = await Promise.all([
        park(store, hold),
        signal(store, hold.id),
        // The same call again, as where its answer was lost.
        signal(store, hold.id),
      ])
      assert.deepEqual([ended, status], ['ok', 'ok'])
      const { state, journal } = await find(store, hold.id)
      assert.deepEqual({ state, journal }, { state: 'waiting', journal: 1 })
      await store.operations.remove({ ids: [hold.id] })
    }
  },

  'a job that waits for others, and whose others end meanwhile, goes on': async (store) => {
    needs(store, 'steps', 'this check')
    needs(store, 'graphs', 'this check')
    for (let round = 0; round < 10; round++) {
      const [child, other] = [newJob({ queue: 'r' }), newJob({ queue: 'r' })]
      const hold = await running(store)
      await store.operations.push({ jobs: [child, other] })
      const { jobs } = await claim(store, { queue: 'r' })
      const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
      const [ended] = await Promise.all([
        park(store, hold, { after: [child.id, other.id] }),
        store.operations.complete({ queue: 'r', items: items.slice(0, 1) }),
        store.operations.complete({ queue: 'r', items: items.slice(1) }),
      ])
      assert.equal(ended, 'ok')
      const { id, journal } = first((await claim(store)).jobs)
      assert.deepEqual({ id, journal }, { id: hold.id, journal: undefined })
      await store.operations.remove({ ids: [hold.id] })
    }
  },

  'a parked job can be claimed by nobody, and a park ends a claim once': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    const outcomes = await Promise.all([park(store, hold), park(store, hold)])
    assert.deepEqual(outcomes.toSorted(), ['ok', 'stale'])
    assert.deepEqual((await claim(store)).jobs, [])
    assert.equal(await add(store, hold, [entry('=late')]), 'stale')
    assert.equal((await find(store, hold.id)).journal, undefined)
  },

  'parks, endings and entries of one call are each for themselves': async (store) => {
    needs(store, 'steps', 'this check')
    await store.operations.push({ jobs: Array.from({ length: 6 }, () => newJob({ key: null })) })
    const { jobs } = await claim(store)
    const [a, b, c, d, e, f] = jobs
    assert.ok(a && b && c && d && e && f)
    const outcomes = await store.operations.release({
      queue: 'q',
      items: [
        a,
        parked(b, { until: 0, entries: [entry('=b')], reason: '"b"' }),
        { ...c, fence: c.fence + 1 },
        parked({ ...d, fence: d.fence + 1 }, { entries: [entry('=d')] }),
        parked(e, { until: 8_640_000_000_000_000, reason: '"e"' }),
        parked(f, { after: [a.id] }),
      ],
    })
    assert.deepEqual(outcomes, ['ok', 'ok', 'stale', 'stale', 'ok', 'ok'])
    const found = await store.operations.find({ ids: jobs.map(({ id }) => id) })
    assert.deepEqual(
      found.map((record) => [record?.state, record?.journal, record?.parked, record?.attempt]),
      [
        ['waiting', undefined, undefined, 0],
        ['waiting', 1, '"b"', 0],
        ['running', undefined, undefined, 1],
        ['running', undefined, undefined, 1],
        ['scheduled', undefined, '"e"', 0],
        ['blocked', undefined, '{}', 0],
      ],
    )
    assert.equal(found[4]?.dueAt, 8_640_000_000_000_000)
  },

  'no job has the journal of one that was removed': async (store) => {
    needs(store, 'steps', 'this check')
    needs(store, 'lists', 'this check')
    const { operations } = store
    const removals: ((hold: Hold) => Promise<unknown>)[] = [
      ({ id }) => operations.remove({ ids: [id] }),
      (hold) => operations.complete({ queue: 'q', items: [{ ...hold, result: null }] }),
      ({ id }) => operations.cancel({ ids: [id] }),
      () => operations.remove({ queue: 'q', state: 'running', limit: 10 }),
      () => operations.remove({ queue: 'q', limit: 10 }),
      () => operations.bulk({ queue: 'q', state: 'running', change: { kind: 'remove' }, limit: 10 }),
    ]
    for (const remove of removals) {
      const hold = await running(store)
      await operations.configure({ queue: 'q', keepDone: 0, keepDead: 0 })
      assert.equal(await add(store, hold, [entry('=a'), entry('=b')]), 'ok')
      assert.equal(await signal(store, hold.id), 'ok')
      await remove(hold)
      const items = [{ id: hold.id, after: 0 }]
      assert.deepEqual(await operations.entries({ items }), [null])
      const next = await running(store)
      assert.equal((await find(store, next.id)).journal, undefined)
      assert.deepEqual(await read(store, next.id), [])
      assert.equal(await add(store, next, [entry('=a')]), 'ok')
      assert.equal((await read(store, next.id)).length, 1)
      await operations.remove({ ids: [next.id] })
    }
  },

  'what a list says of parked jobs and journals': async (store) => {
    needs(store, 'steps', 'this check')
    needs(store, 'lists', 'this check')
    const [first_, second] = [await running(store), await running(store)]
    await park(store, first_, { reason: '{"waits":["mail"]}', entries: [entry('=a')] })
    await store.operations.fail({
      queue: 'q',
      items: [{ ...second, error: { code: 'HandlerFailed', name: 'Error', message: 'no' }, delay: 60_000 }],
    })
    const { jobs } = await store.operations.list({ queue: 'q', state: 'scheduled', limit: 10 })
    const told = new Map(jobs.map(({ id, journal, parked: reason }) => [id, [journal, reason]]))
    assert.deepEqual(told.get(first_.id), [1, '{"waits":["mail"]}'])
    assert.deepEqual(told.get(second.id), [undefined, undefined])
  },

  'a parked job that was claimed again is not parked any more': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    await park(store, hold, { until: 0, reason: '"once"' })
    const again = first((await claim(store)).jobs)
    assert.equal((await find(store, hold.id)).parked, undefined)
    await store.operations.fail({
      queue: 'q',
      items: [{ ...again, error: { code: 'HandlerFailed', name: 'Error', message: 'no' }, delay: 60_000 }],
    })
    assert.equal(await signal(store, hold.id), 'ok')
    const { state, parked: reason } = await find(store, hold.id)
    assert.deepEqual({ state, reason }, { state: 'scheduled', reason: undefined })
  },
})

everyWay('bells of steps', {
  'work: a signal wakes a parked job': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    await park(store, hold)
    await hear(store, 'work', () => signal(store, hold.id))
  },

  'work: a park that lets its job wait at once, or soon': async (store) => {
    needs(store, 'steps', 'this check')
    const hold = await running(store)
    await hear(store, 'work', () => park(store, hold, { until: 0 }))
    const again = first((await claim(store)).jobs)
    await signal(store, hold.id)
    await hear(store, 'work', () => park(store, again))
  },

  'work: a park gives its slot to another job': async (store) => {
    needs(store, 'steps', 'this check')
    needs(store, 'graphs', 'this check')
    needs(store, 'limits', 'this check')
    await store.operations.configure({ queue: 'q', running: 1 })
    const child = newJob({ queue: 'r' })
    await store.operations.push({ jobs: [child] })
    for (const given of [{ after: [child.id] }, { after: [] }]) {
      const hold = await running(store)
      await store.operations.push({ jobs: [newJob()] })
      await hear(store, 'work', () => park(store, hold, given))
      const { id } = first((await claim(store)).jobs)
      await store.operations.cancel({ ids: [id, hold.id] })
    }
  },

  'work: a job that waits for others goes on': async (store) => {
    needs(store, 'steps', 'this check')
    needs(store, 'graphs', 'this check')
    const hold = await running(store)
    const child = newJob({ queue: 'q' })
    await store.operations.push({ jobs: [child] })
    const held = first((await claim(store)).jobs)
    await park(store, hold, { after: [child.id] })
    await hear(store, 'work', () => store.operations.complete({ queue: 'q', items: [{ ...held, result: null }] }))
    assert.equal(first((await claim(store)).jobs).id, hold.id)
  },
})
