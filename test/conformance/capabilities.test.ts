/** Per capability: a store that has it takes what needs it, and one that lacks it answers `NotSupported` or drops it, as operations.md says. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Capabilities, Operations, Store } from '../../src/store.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { ERROR, NULL, newId, newJob } from '../support/jobs.ts'
import { plain, stores } from './stores.ts'
import { claim, first, running } from './suite.ts'

type Calls = (operations: Operations, store: Store) => Promise<unknown>[]

const RECORD = { worker: null, startedAt: null, finishedAt: null, progress: null, result: null, error: null }
const PARK = { until: null, signals: 0, after: [], entries: [], reason: '{}' }
const rate = { count: 5, per: 1000, burst: null }

/** What a store without the capability refuses. */
const REFUSED: { [Name in keyof Capabilities]?: Calls } = {
  settings: ({ configure, settings }) => [configure({ queue: 'q', paused: false }), settings({ queue: 'q' })],
  delays: ({ push }) => [
    push({ jobs: [newJob({ delay: 10 })] }),
    push({ jobs: [newJob({ runAt: Date.now() + 60_000 })] }),
  ],
  priorities: ({ push }, store) => [push({ jobs: [newJob({ priority: 5 })] }), claim(store, { minPriority: 1 })],
  keys: ({ push }) => [push({ jobs: [newJob({ key: newId() })] })],
  once: ({ push }) => [
    push({ jobs: [newJob({ key: newId(), once: { unique: { for: 1000, since: 'end' } } })] }),
    push({ jobs: [newJob({ key: newId(), once: { replace: true } })] }),
    push({ jobs: [newJob({ key: newId(), once: { follow: true } })] }),
  ],
  graphs: ({ push, relatives }) => [
    push({ jobs: [newJob({ after: [newId()] })] }),
    push({ jobs: [newJob({ partOf: newId() })] }),
    push({ jobs: [newJob()], whole: true }),
    relatives({ ids: [newId()], limit: 1 }),
  ],
  limits: ({ configure }) => [configure({ queue: 'q', running: 5 })],
  rates: ({ configure, release }, store) => [
    configure({ queue: 'q', rate }),
    running(store).then((hold) => release({ queue: 'q', items: [{ ...hold, pause: 10 }] })),
  ],
  groups: ({ configure, limitGroup, groups }) => [
    configure({ queue: 'g', grouped: true }),
    configure({ queue: 'g', groupRunning: 5 }),
    configure({ queue: 'g', groupRate: rate }),
    limitGroup({ queue: 'g', group: 'a', limits: null }),
    groups({ queue: 'g', limit: 1 }),
  ],
  steps: ({ journal, entries, signal, release }) => [
    journal({ queue: 'q', items: [{ id: newId(), fence: 1, entries: [] }] }),
    release({ queue: 'q', items: [{ id: newId(), fence: 1, park: PARK }] }),
    entries({ items: [{ id: newId(), after: 0 }] }),
    signal({ items: [{ id: newId(), name: '!go/1', meta: '{}', body: null }] }),
  ],
  find: ({ find, outcomes, ahead }) => [find({ ids: [newId()] }), outcomes({ ids: [newId()] }), ahead({ id: newId() })],
  lists: ({ list, bulk }) => [
    list({ queue: 'q', state: 'waiting', limit: 1 }),
    bulk({ queue: 'q', state: 'waiting', change: { kind: 'cancel' }, limit: 0 }),
  ],
  text: ({ list }) => [list({ queue: 'q', state: 'waiting', limit: 1, filter: { text: 'a' } })],
  cancel: ({ cancel }) => [cancel({ ids: [newId()] })],
  update: ({ update }) => [update({ items: [{ id: newId() }] })],
  requeue: ({ requeue }) => [requeue({ ids: [newId()] }), requeue({ queue: 'q', limit: 1 })],
  remove: ({ remove }) => [remove({ ids: [newId()] }), remove({ queue: 'q', limit: 1 })],
  restore: ({ restore }) => {
    const { delay: _, runAt: __, fresh: ___, ...job } = newJob({ attempts: 1, timeout: null })
    const times = { pushedAt: Date.now(), dueAt: Date.now() }
    return [
      restore({
        records: [{ ...job, ...RECORD, ...times, state: 'waiting', attempts: 1, attempt: 0, fence: 0, cost: 1 }],
      }),
    ]
  },
  workers: ({ workers }) => [workers({})],
}

/** What a store without the capability takes, and what it then lacks. */
const DROPPED: { [Name in keyof Capabilities]?: (store: Store, has: boolean) => Promise<void> } = {
  async delays(store, has) {
    const hold = await running(store)
    const items = [{ ...hold, error: ERROR, delay: 60_000 }]
    assert.deepEqual(await store.operations.fail({ queue: 'q', items }), ['retry'])
    assert.equal((await claim(store)).jobs.length, has ? 0 : 1, 'without delays, a failed job waits at once')
  },
  async groups(store) {
    await store.operations.push({ jobs: [newJob({ group: 'a' }), newJob({ group: 'a' })] })
    assert.deepEqual(
      (await claim(store, { perGroup: 2 })).jobs.map(({ group }) => group),
      ['a', 'a'],
      'a group is a label',
    )
  },
  async results(store, has) {
    const { id, fence } = await running(store)
    const items = [{ id, fence, progress: NULL }]
    assert.deepEqual(await store.operations.extend({ queue: 'q', lease: 60_000, items }), ['ok'])
    assert.deepEqual(await store.operations.complete({ queue: 'q', items: [{ id, fence, result: NULL }] }), ['ok'])
    if (!store.capabilities.find) return
    const record = first(await store.operations.find({ ids: [id] }))
    assert.deepEqual([record?.progress, record?.result], has ? [NULL, NULL] : [null, null])
  },
  async counts(store, has) {
    const { id, fence } = await running(store)
    await store.operations.complete({ queue: 'q', items: [{ id, fence, result: null }] })
    await store.operations.push({ jobs: [newJob(), newJob()] })
    const { counts, oldestWaiting } = first(await store.operations.stats({ queue: 'q' }))
    assert.deepEqual([counts.waiting, counts.done, oldestWaiting !== null], [2, has ? 1 : 0, has])
  },
  async logs(store, has) {
    const { id, fence } = await running(store)
    const items = [{ id, fence, progress: null, log: ['a line'] }]
    assert.deepEqual(await store.operations.extend({ queue: 'q', lease: 60_000, items }), ['ok'])
    if (!store.capabilities.find) return
    assert.deepEqual(first(await store.operations.find({ ids: [id] }))?.log, has ? ['a line'] : undefined)
  },
  async histograms(store, has) {
    await store.operations.push({ jobs: [newJob()] })
    await store.operations.record({ slices: [{ queue: 'q', priority: 4, metric: 'run', buckets: { 1: 1 } }] })
    assert.equal(first(await store.operations.stats({ queue: 'q', minutes: 60 })).histograms.length, has ? 1 : 0)
  },
  async workers(store, has) {
    await store.operations.push({ jobs: [newJob()] })
    const beat = { id: 'w', host: 'h', pid: 1, slots: 1, busy: 0 }
    const workers = [
      { ...beat, queue: 'q' },
      { ...beat, queue: 'unknown' },
    ]
    assert.deepEqual(await store.operations.heartbeat({ workers, gone: [] }), [true, false])
    assert.equal(first(await store.operations.stats({ queue: 'q' })).lastClaim !== null, has)
  },
  async schedules(store, has) {
    const refused = await isRefused(store.operations.schedules({ limit: 1 }))
    assert.equal(refused, !has)
  },
  async bounded(store, has) {
    await store.operations.push({ jobs: [newJob()] })
    if (!store.capabilities.settings) return
    const report = await store.operations.settings({ queue: 'q' })
    assert.equal(report?.values.capacity !== null, has)
  },
  async transactions(store, has) {
    assert.equal(store.transactions !== undefined, has)
  },
  async replicas(store, has) {
    assert.equal(store.replicas !== undefined, has)
  },
}

/** They promise something of what all stores can do; tests of their own keep them to it. */
const PROMISES: readonly (keyof Capabilities)[] = ['durable', 'shared', 'pipelined', 'spill']

async function isRefused(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return false
  } catch (error) {
    if (isMillpondError(error, 'NotSupported')) return true
    throw error
  }
}

for (const { name, skip, open } of [...stores, plain]) {
  describe(`capabilities: ${name}`, { skip }, () => {
    for (const capability of new Set([...keysOf(REFUSED), ...keysOf(DROPPED)])) {
      test(capability, async () => {
        const { store, dispose } = await open()
        try {
          const has = store.capabilities[capability]
          const calls = REFUSED[capability]?.(store.operations, store) ?? []
          const refused = await Promise.all(calls.map(isRefused))
          assert.deepEqual(refused, Array(calls.length).fill(!has))
          await DROPPED[capability]?.(store, has)
        } finally {
          await dispose()
        }
      })
    }

    test('are all tested, and all told', async () => {
      const { store, dispose } = await open()
      const known = new Set([...keysOf(REFUSED), ...keysOf(DROPPED), ...PROMISES])
      assert.deepEqual(Object.keys(store.capabilities).sort(), [...known].sort())
      await dispose()
    })
  })
}

function keysOf<Key extends string>(table: { [Name in Key]?: unknown }): Key[] {
  return Object.keys(table) as Key[]
}
