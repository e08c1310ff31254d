/** Jobs that wait for others are moved with what they wait for, and none is cancelled because its parent leaves the source. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import type { JobState, NewJob } from '../../src/values/jobs/records.ts'
import { stores } from '../conformance/stores.ts'
import { claim, first } from '../conformance/suite.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import { Fuse, Killed } from './fuse.ts'

const kinds = stores.filter(({ name }) => ['memory', 'sqlite', 'redis', 'postgres'].includes(name))
const memory = first(kinds)

interface Ends {
  source: Store
  target: Store
}

async function between(from: typeof memory, to: typeof memory, check: (ends: Ends) => Promise<void>): Promise<boolean> {
  const source = await from.open()
  const target = await to.open()
  const lacks = [source, target].some(({ store }) => !store.capabilities.graphs)
  try {
    if (!lacks) await check({ source: source.store, target: target.store })
  } finally {
    await source.dispose()
    await target.dispose()
  }
  return !lacks
}

const inMemory = (check: (ends: Ends) => Promise<void>) => async () => {
  await between(memory, memory, check)
}

async function statesIn({ operations }: Store, jobs: readonly NewJob[]): Promise<(JobState | undefined)[]> {
  return (await operations.find({ ids: jobs.map(({ id }) => id) })).map((record) => record?.state)
}

async function complete(store: Store, queue: string): Promise<string[]> {
  const { jobs } = await claim(store, { queue })
  const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
  if (items.length > 0) await store.operations.complete({ queue, items })
  return jobs.map(({ id }) => id)
}

/** a ─► b ─► d, a ─► c (in another queue) ─► d, and one that is done. */
async function pushDiamond({ operations }: Store): Promise<NewJob[]> {
  const done = newJob({ queue: 'done' })
  await operations.push({ jobs: [done] })
  const { id, fence } = first((await operations.claim({ queue: 'done', worker: 'w', limit: 1, lease: 60_000 })).jobs)
  await operations.complete({ queue: 'done', items: [{ id, fence, result: null }] })
  const a = newJob({ queue: 'p' })
  const b = newJob({ queue: 'q', after: [a.id, done.id], onDead: 'run' })
  const c = newJob({ queue: 'r', after: [a.id], delay: 3_600_000 })
  const d = newJob({ queue: 'q', after: [b.id, c.id] })
  await operations.push({ jobs: [a, b, c, d] })
  return [a, b, c, d]
}

for (const [from, to] of kinds.flatMap((kind) => [
  [memory, kind] as const,
  ...(kind === memory ? [] : [[kind, memory] as const]),
])) {
  test(`${from.name} to ${to.name}: a graph over several queues`, { skip: from.skip || to.skip }, async (t) => {
    const ran = await between(from, to, async ({ source, target }) => {
      const jobs = await pushDiamond(source)
      const report = await move(source, target)
      assert.deepEqual([report.moved, report.repeated, report.left, report.remaining], [5, 0, 0, 0])
      assert.deepEqual(await statesIn(target, jobs), ['waiting', 'blocked', 'blocked', 'blocked'])
      const found = await target.operations.find({ ids: jobs.map(({ id }) => id) })
      assert.deepEqual(
        found.map((record) => [record?.waitsFor, record?.onDead]),
        [
          [undefined, undefined],
          [1, 'run'],
          [1, undefined],
          [2, undefined],
        ],
      )
      await complete(target, 'p')
      assert.deepEqual(await statesIn(target, jobs), ['done', 'waiting', 'scheduled', 'blocked'])
      await complete(target, 'q')
      await target.operations.update({ items: [{ id: jobs[2]?.id ?? '', delay: 0 }] })
      await complete(target, 'r')
      assert.deepEqual(await statesIn(target, jobs), ['done', 'done', 'done', 'waiting'])
    })
    if (!ran) t.skip('one of them lacks graphs')
  })
}

for (const outcome of ['done', 'dead', 'gone'] as const) {
  test(
    `a parent runs at the source while its child is moved, and is ${outcome}`,
    inMemory(async ({ source, target }) => {
      const parent = newJob()
      const child = newJob({ after: [parent.id] })
      await source.operations.push({ jobs: [parent, child] })
      if (outcome === 'gone') await source.operations.configure({ queue: 'q', keepDone: 0 })
      const { id, fence } = first((await claim(source)).jobs)
      const stop = new AbortController()
      const moving = move(source, target, { signal: stop.signal, follow: true })
      while ((await statesIn(target, [child]))[0] === undefined) await new Promise(setImmediate)
      assert.deepEqual(await statesIn(target, [child]), ['blocked'])
      const error = { id, fence, error: ERROR, delay: null }
      if (outcome === 'dead') await source.operations.fail({ queue: 'q', items: [error] })
      else await source.operations.complete({ queue: 'q', items: [{ id, fence, result: null }] })
      while ((await statesIn(target, [child]))[0] === 'blocked') await new Promise(setImmediate)
      stop.abort()
      const report = await moving
      assert.deepEqual([report.left, report.remaining], [0, 0])
      const found = first(await target.operations.find({ ids: [child.id] }))
      assert.deepEqual(
        [found?.state, found?.error?.code],
        outcome === 'dead' ? ['cancelled', 'ParentFailed'] : ['waiting', undefined],
      )
    }),
  )
}

test(
  'more children, and a longer chain, than a batch has',
  inMemory(async ({ source, target }) => {
    const root = newJob()
    const wide = newJobs(2500, { queue: 'a', after: [root.id] })
    const chain = newJobs(2500)
    for (const [at, job] of chain.entries()) job.after = [chain[at - 1]?.id ?? root.id]
    await source.operations.push({ jobs: [root, ...wide, ...chain] })
    const report = await move(source, target)
    assert.deepEqual([report.moved, report.repeated, report.left, report.remaining], [5001, 0, 0, 0])
    const counts = (await target.operations.stats({})).map(({ queue, counts: { blocked, waiting } }) => [
      queue,
      blocked,
      waiting,
    ])
    assert.deepEqual(counts.toSorted(), [
      ['a', 2500, 0],
      ['q', 2500, 1],
    ])
  }),
)

test(
  'what cannot be moved keeps what it waits for at the source',
  inMemory(async ({ source, target }) => {
    const jobs = await pushDiamond(source)
    const some = await move(source, target, { queues: ['p', 'q'] })
    assert.deepEqual([some.moved, some.left], [0, 3])
    // The first one has been taken, and comes back by itself.
    assert.deepEqual(await statesIn(source, jobs), ['scheduled', 'blocked', 'blocked', 'blocked'])
    const lacking: Store = { ...target, capabilities: { ...target.capabilities, graphs: false } }
    const none = await move(source, lacking)
    assert.deepEqual([none.moved, none.left], [1, 4])
    assert.deepEqual(none.queues.find(({ queue }) => queue === 'p')?.left, { NotSupported: 1 })
    assert.deepEqual(await statesIn(source, jobs), ['scheduled', 'blocked', 'blocked', 'blocked'])
    assert.equal((await move(source, target)).moved, 4)
  }),
)

for (const when of ['before', 'after'] as const) {
  test(`killed ${when} each call, in turn, and started again`, async () => {
    let calls = 0
    for (let isReached = true; isReached; ) {
      const at = ++calls
      await between(memory, memory, async ({ source, target }) => {
        const jobs = await pushDiamond(source)
        const fuse = new Fuse(at, when)
        const ended = await move(fuse.on(source), fuse.on(target)).catch((error: unknown) => error)
        isReached = fuse.calls >= at
        assert.equal(ended instanceof Killed, isReached, `at call ${at}`)
        const report = await move(source, target)
        assert.deepEqual([report.left, report.remaining], [0, 0], `at call ${at}`)
        const states = (await statesIn(target, jobs)).map((state) => state?.replace('scheduled', 'waiting'))
        assert.deepEqual(states, ['waiting', 'blocked', 'blocked', 'blocked'], `at call ${at}`)
      })
    }
    assert.ok(calls > 20, `${calls} calls`)
  })
}
