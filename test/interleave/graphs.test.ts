/**
 * Graphs, in every order: processes push children while others end, cancel or remove the parents. Whatever the order, a child that was stored
 * runs if all of its parents are done, and is cancelled if one has failed; nobody waits for ever; of a push of all or none, all or none is there.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { ClaimedJob, NewJob, PushOutcome } from '../../src/values/jobs/records.ts'
import { sample } from '../support/depth.ts'
import { newId } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { PLACES, type Processes } from './processes.ts'
import { clock } from './world.ts'

type Name = 'a' | 'b' | 'c' | 'd'

/** One graph: jobs by their names, in the queue of the parents or that of the children. */
class Graph {
  readonly #ids: Record<Name, string> = { a: newId(), b: newId(), c: newId(), d: newId() }
  readonly parents: string
  readonly children: string
  readonly outcomes = new Map<Name, PushOutcome>()
  readonly #claims: ClaimedJob[] = []

  constructor(number: number) {
    this.parents = `p${process.pid}.${number}`
    this.children = `c${process.pid}.${number}`
  }

  id = (name: Name): string => this.#ids[name]

  job(name: Name, given: Partial<NewJob> = {}): NewJob {
    return {
      ...{ id: this.id(name), queue: given.after === undefined ? this.parents : this.children, priority: 4, delay: 0 },
      ...{ runAt: null, key: null, group: null, attempts: 1, timeout: null, trace: null },
      ...{ data: { encoding: 'json', body: '1' } as const, ...given },
    }
  }

  async push({ operations }: Store, names: readonly Name[], jobs: readonly NewJob[], whole = false): Promise<void> {
    const outcomes = await operations.push({ jobs, whole })
    for (const [at, outcome] of outcomes.entries()) this.outcomes.set(names[at] ?? 'a', outcome)
  }

  /** A claim does without a partition that is slow to answer. */
  async claimParents({ operations }: Store): Promise<void> {
    await until(async () => {
      const { jobs } = await operations.claim({ queue: this.parents, worker: 'w', limit: 10, lease: 1000 })
      this.#claims.push(...jobs)
      return this.#claims.length === 2
    }, 'both parents are claimed')
  }

  holdOf(name: Name): { id: string; fence: number } {
    const claim = this.#claims.find(({ id }) => id === this.id(name))
    assert.ok(claim, `${name} was claimed`)
    return { id: claim.id, fence: claim.fence }
  }
}

type Step = (store: Store, graph: Graph) => Promise<unknown>

const error = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }
const complete =
  (name: Name): Step =>
  ({ operations }, graph) =>
    operations.complete({ queue: graph.parents, items: [{ ...graph.holdOf(name), result: null }] })
const fail =
  (name: Name): Step =>
  ({ operations }, graph) =>
    operations.fail({ queue: graph.parents, items: [{ ...graph.holdOf(name), error, delay: null }] })
const cancel =
  (name: Name): Step =>
  ({ operations }, graph) =>
    operations.cancel({ ids: [graph.id(name)] })
const remove =
  (name: Name): Step =>
  ({ operations }, graph) =>
    operations.remove({ ids: [graph.id(name)] })
const requeue =
  (...names: readonly Name[]): Step =>
  ({ operations }, graph) =>
    operations.requeue({ ids: names.map(graph.id) })
const both =
  (one: Step, other: Step): Step =>
  async (store, graph) => {
    await one(store, graph)
    await other(store, graph)
  }
const lose: Step = ({ operations }) => {
  clock.now += 2000
  return operations.sweep({ limit: 100 })
}
const child =
  (name: Name, parents: readonly Name[]): Step =>
  (store, graph) =>
    graph.push(store, [name], [graph.job(name, { after: parents.map(graph.id) })])
const part =
  (name: Name, whole: Name): Step =>
  (store, graph) =>
    graph.push(store, [name], [graph.job(name, { partOf: graph.id(whole), queue: graph.children })])
const line: Step = (store, graph) => {
  const jobs = [graph.job('c', { after: [graph.id('a')] }), graph.job('d', { after: [graph.id('c')] })]
  return graph.push(store, ['c', 'd'], jobs, true)
}

const ENDS: Record<string, (name: Name) => Step> = { complete, fail, cancel, remove, 'a lost lease': () => lose }

/** What each session does, by the name of the race. All begin with the parents a and b, which run. */
const RACES: Record<string, { first?: Step; sessions: readonly (readonly Step[])[] }> = {
  ...Object.fromEntries(
    Object.entries(ENDS).flatMap(([name, end]) => [
      [`a push with parents ∥ ${name}`, { sessions: [[child('c', ['a', 'b'])], [end('a'), complete('b')]] }],
      [`a push of all or none ∥ ${name}`, { sessions: [[line], [end('a')]] }],
      [`two pushes of all or none ∥ ${name}`, { sessions: [[line], [line], [end('a')]] }],
      [
        `a push that is part of a job ∥ ${name}`,
        { first: child('c', ['a']), sessions: [[part('d', 'a')], [end('a')]] },
      ],
      ...Object.entries(ENDS)
        .filter(([other]) => name !== 'a lost lease' && other !== 'a lost lease')
        .map(([other, otherEnd]) => [
          `the last two parents: ${name} ∥ ${other}`,
          { first: child('c', ['a', 'b']), sessions: [[end('a')], [otherEnd('b')]] },
        ]),
    ]),
  ),
  'cancel of a child ∥ its parent ends ∥ a push after both': {
    first: child('c', ['a']),
    sessions: [[cancel('c')], [complete('a')], [child('d', ['a', 'c'])]],
  },
  'requeue of a parent ∥ a push after it': { first: fail('a'), sessions: [[child('c', ['a'])], [requeue('a')]] },
  'requeue of a child and its parent ∥ the same': {
    first: both(child('c', ['a', 'b']), fail('a')),
    sessions: [[requeue('c', 'a')], [requeue('a', 'c')], [complete('b')]],
  },
  ...Object.fromEntries(
    Object.entries(ENDS).map(([name, end]) => [
      `requeue of a child ∥ its parent: ${name}`,
      { first: both(child('c', ['a', 'b']), cancel('c')), sessions: [[requeue('c')], [end('a'), complete('b')]] },
    ]),
  ),
}

/** Each order of so many steps of each session, which keep their own order. */
function orders(left: readonly number[]): number[][] {
  if (left.every((count) => count === 0)) return [[]]
  return left.flatMap((count, session) =>
    count === 0
      ? []
      : orders(left.map((each, at) => (at === session ? each - 1 : each))).map((rest) => [session, ...rest]),
  )
}

async function live({ operations }: Store, queue: string): Promise<number> {
  const [stats] = await operations.stats({ queue })
  const { blocked = 0, scheduled = 0, waiting = 0, running = 0 } = stats?.counts ?? {}
  return blocked + scheduled + waiting + running
}

/** Ends all jobs. */
async function workOff(store: Store, graph: Graph, about: string): Promise<void> {
  const { operations } = store
  const queues = [graph.parents, graph.children]
  let rounds = 0
  await until(async () => {
    clock.now += 2000
    await operations.sweep({ limit: 100 })
    for (const queue of queues) {
      const { jobs } = await operations.claim({ queue, worker: 'w', limit: 10, lease: 60_000 })
      await operations.complete({ queue, items: jobs.map(({ id, fence }) => ({ id, fence, result: null })) })
    }
    if (++rounds < 5) return false
    const left = await Promise.all(queues.map((queue) => live(store, queue)))
    return left.every((count) => count === 0)
  }, `${about}: no job waits for ever`)
}

const PARENTS: Record<Name, readonly Name[]> = { a: [], b: [], c: ['a', 'b'], d: ['a', 'c'] }

async function check(store: Store, graph: Graph, about: string): Promise<void> {
  const names: Name[] = ['a', 'b', 'c', 'd']
  const [relatives, records] = await Promise.all([
    store.operations.relatives({ ids: names.map(graph.id), limit: 10 }),
    store.operations.find({ ids: names.map(graph.id) }),
  ])
  const stateOf = (name: Name) => records[names.indexOf(name)]?.state
  for (const name of ['c', 'd'] as const) {
    const outcome = graph.outcomes.get(name)
    if (outcome === undefined) continue
    const state = stateOf(name)
    if (outcome.status === 'orphan' || outcome.status === 'withheld') {
      assert.equal(state, undefined, `${about}: ${name} was not stored`)
      continue
    }
    assert.ok(state !== undefined, `${about}: ${name} is there`)
    assert.ok(['done', 'cancelled'].includes(state), `${about}: ${name} is ${state}`)
    // It waits for no parent that has ended before it came back, and keeps its error.
    if (about.startsWith('requeue of a child')) continue
    const failed = PARENTS[name].filter((parent) => {
      const waited = relatives[names.indexOf(name)]?.parents.includes(graph.id(parent))
      return waited && stateOf(parent) !== 'done'
    })
    if (failed.length > 0) assert.equal(state, 'cancelled', `${about}: ${name} after ${failed}`)
    if (state === 'cancelled' && records[names.indexOf(name)]?.error === null) continue
    const error = records[names.indexOf(name)]?.error
    assert.equal(error?.code, state === 'cancelled' ? 'ParentFailed' : undefined, `${about}: ${name}`)
  }
}

for (const { name: place, skip, open } of PLACES) {
  describe(`graphs in every order: ${place}`, { skip }, () => {
    let processes: Processes
    let count = 0
    before(async () => {
      processes = await open(2)
    })
    after(() => processes.close())

    for (const [about, { first, sessions }] of Object.entries(RACES)) {
      test(about, async (t) => {
        const [one, other = one] = processes.stores
        assert.ok(one !== undefined && other !== undefined)
        if (!one.capabilities.graphs) return t.skip('the store lacks graphs')
        for (const order of sample(orders(sessions.map(({ length }) => length)), 6)) {
          const graph = new Graph(++count)
          await graph.push(one, ['a', 'b'], [graph.job('a'), graph.job('b')])
          await graph.claimParents(one)
          await first?.(one, graph)
          const left = sessions.map((steps) => [...steps])
          for (const session of order) await left[session]?.shift()?.(session % 2 === 0 ? one : other, graph)
          const title = `${about}, order ${order.join('')}`
          await workOff(one, graph, title)
          await check(one, graph, title)
        }
      })
    }
  })
}
