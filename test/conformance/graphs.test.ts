/** Graphs, beyond what the vectors hold: bells, and many links. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import { lacking } from '../../src/values/operations/capabilities.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { ERROR, newId, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { hear } from './bells.ts'
import { claim, conformance, first } from './suite.ts'

const { step } = DEFAULTS.graph
/** Jobs of a call. */
const BATCH = 1000
/** Ms after which a sweep takes up what the client that ended a job may still be doing. */
const PATIENCE = 1000

function hasGraphs(store: Store): void {
  if (!store.capabilities.graphs) throw lacking(store, 'graphs', 'a graph')
}

const countsIn = async ({ operations }: Store, queue = 'q') => first(await operations.stats({ queue })).counts

/** Sweeps until there is nothing more to do. @returns how many calls it took */
async function sweepAll({ operations }: Store): Promise<number> {
  for (let calls = 1; ; calls++) if (!(await operations.sweep({ limit: 10_000 })).more) return calls
}

async function completeAll(store: Store): Promise<number> {
  let count = 0
  for (;;) {
    const { jobs } = await claim(store, { limit: BATCH })
    if (jobs.length === 0) return count
    const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
    assert.ok((await store.operations.complete({ queue: 'q', items })).every((outcome) => outcome === 'ok'))
    count += jobs.length
  }
}

conformance('graphs', {
  'work: the last parent is done, in another queue': async (store) => {
    hasGraphs(store)
    const parent = newJob({ queue: 'p' })
    await store.operations.push({ jobs: [parent, newJob({ after: [parent.id] })] })
    const { id, fence } = first((await claim(store, { queue: 'p' })).jobs)
    // A store may ring only for who has asked in vain.
    assert.equal((await claim(store)).jobs.length, 0)
    await hear(store, 'work', () => store.operations.complete({ queue: 'p', items: [{ id, fence, result: null }] }))
    assert.equal((await claim(store)).jobs.length, 1)
  },

  'work: the last parent is dead, in a sweep': async (store, clock) => {
    hasGraphs(store)
    const parent = newJob({ queue: 'p', attempts: 1 })
    await store.operations.push({ jobs: [parent, newJob({ after: [parent.id], onDead: 'run' })] })
    await claim(store, { queue: 'p', lease: 50 })
    await claim(store)
    clock.now += 50
    await hear(store, 'work', () => store.operations.sweep({ limit: 10 }))
  },

  'a job is cancelled because its parent is dead or cancelled; or at once, if it was so before': async (store) => {
    hasGraphs(store)
    const [dead, cancelled] = [newJob({ queue: 'p' }), newJob({ queue: 'r' })]
    const children = [dead, cancelled].map(({ id }) => newJob({ after: [id] }))
    const [one, two] = children.map(({ id }) => id)
    await store.operations.push({ jobs: [dead, cancelled, ...children] })
    const { id, fence } = first((await claim(store, { queue: 'p' })).jobs)
    const items = [{ id, fence, error: ERROR, delay: null }]
    await store.operations.fail({ queue: 'p', items })
    await store.operations.cancel({ ids: [cancelled.id] })
    const late = newJob({ after: [dead.id] })
    await store.operations.push({ jobs: [late] })
    const found = await store.operations.find({ ids: [one ?? '', two ?? '', late.id] })
    assert.deepEqual(
      found.map((record) => [record?.error?.name, record?.error?.message]),
      [
        ['MillpondError', `The job ${dead.id}, which it waited for, is dead.`],
        ['MillpondError', `The job ${cancelled.id}, which it waited for, is cancelled.`],
        ['MillpondError', `The job ${dead.id}, which it waited for, is dead.`],
      ],
    )
  },

  'an ending settles so many links, and sweeps the others': async (store, clock) => {
    hasGraphs(store)
    const root = newJob()
    const children = newJobs(2 * step + 5, { after: [root.id] })
    await store.operations.push({ jobs: [root] })
    for (let at = 0; at < children.length; at += BATCH)
      await store.operations.push({ jobs: children.slice(at, at + BATCH) })
    const last = newJob({ after: children.map(({ id }) => id) })
    await store.operations.push({ jobs: [last] })
    const { id, fence } = first((await claim(store)).jobs)
    await store.operations.complete({ queue: 'q', items: [{ id, fence, result: null }] })
    // As many as the contract allows, or fewer.
    const { waiting, blocked } = await countsIn(store)
    assert.equal(waiting + blocked, children.length + 1)
    assert.ok(waiting > 0 && waiting <= step, `${waiting} are settled`)
    clock.now += PATIENCE
    await store.operations.sweep({ limit: 10 })
    const swept = (await countsIn(store)).waiting - waiting
    assert.ok(swept > 0 && swept <= step, `a sweep settles ${swept}`)
    clock.now += PATIENCE
    assert.ok((await sweepAll(store)) >= 1)
    assert.deepEqual((await countsIn(store)).blocked, 1)
    assert.equal(first(await store.operations.find({ ids: [last.id] }))?.waitsFor, children.length)
    assert.equal(await completeAll(store), children.length + 1)
    assert.deepEqual(await countsIn(store), {
      ...(await countsIn(store)),
      blocked: 0,
      waiting: 0,
      done: children.length + 2,
    })
  },

  'a cancel goes through all that waits, however deep and wide': async (store, clock) => {
    hasGraphs(store)
    const root = newJob()
    const wide = newJobs(step, { after: [root.id] })
    const chain = newJobs(30)
    for (const [at, job] of chain.entries()) job.after = [chain[at - 1]?.id ?? wide[0]?.id ?? '']
    const child = newJob({ after: [chain.at(-1)?.id ?? ''], onDead: 'run' })
    await store.operations.push({ jobs: [root, ...wide], whole: true })
    await store.operations.push({ jobs: [...chain, child], whole: true })
    assert.deepEqual(await store.operations.cancel({ ids: [root.id] }), ['cancelled'])
    clock.now += PATIENCE
    // A sweep of Redis leaves out what does not answer soon, as on a busy machine.
    await until(async () => {
      await sweepAll(store)
      return (await countsIn(store)).blocked === 0
    }, 'the last ones to be told')
    const { cancelled, blocked, waiting } = await countsIn(store)
    assert.deepEqual([cancelled, blocked, waiting], [1 + step + 30, 0, 1])
  },

  'a job waits for as many others as the contract allows': async (store) => {
    hasGraphs(store)
    const parents = newJobs(DEFAULTS.bounds.parents.most, { queue: 'p' })
    for (let at = 0; at < parents.length; at += BATCH)
      await store.operations.push({ jobs: parents.slice(at, at + BATCH) })
    const ids = parents.map(({ id }) => id)
    const [child, orphan] = [newJob({ after: ids }), newJob({ after: [...ids.slice(1), newId()] })]
    const outcomes = await store.operations.push({ jobs: [child, orphan] })
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['pushed', 'orphan'],
    )
    const [relatives] = await store.operations.relatives({ ids: [child.id], limit: ids.length })
    assert.deepEqual(relatives?.parents, ids.toSorted())
    await store.operations.cancel({ ids: ids.slice(-1) })
    assert.equal(first(await store.operations.find({ ids: [child.id] }))?.state, 'cancelled')
  },
})
