/**
 * Graphs on Redis, in every order: jobs whose queues lie apart are stored, linked, decided about and settled in several calls of scripts, and
 * others' calls may come between any two of them. A client may also die between them.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { Calls } from '../../src/stores/redis/connection/calls.ts'
import type { NewJob, PushOutcome } from '../../src/values/jobs/records.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { claim } from '../conformance/suite.ts'
import { seeded } from '../faults/harness.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'
import { newJob } from '../support/jobs.ts'
import { inAllOrders } from './orders.ts'
import { Gates } from './redis-gates.ts'
import { clock } from './world.ts'

const SEED = Number(process.env.MILLPOND_INTERLEAVE_SEED ?? randomInt(2 ** 31))
/** Of each case. */
const MOST_ORDERS = Number(process.env.MILLPOND_INTERLEAVE_ORDERS ?? 12)
const DEATHS = 12

type Race = (
  sessions: readonly (() => Promise<unknown>)[],
  deaths?: readonly number[],
) => Promise<PromiseSettledResult<unknown>[]>

for (const partitions of [1, 3]) {
  describe(`graphs in every order: redis, ${partitions} partitions`, { skip: missingReason('redis') }, () => {
    const gates = new Gates()
    const prefix = freshPrefix()
    const stores: Store[] = []
    const random = seeded(SEED)
    before(async () => {
      gates.install(Calls)
      const url = `${serverUrl('redis')}?prefix=${prefix}&partitions=${partitions}`
      for (let i = 0; i < 3; i++) {
        const store = await openStore(url, { clock: () => clock.now })
        stores.push(store)
        await store.operations.push({ jobs: ['p', 'q', 'c'].map((queue) => newJob({ queue, delay: 1e9 })) })
      }
    })
    after(async () => {
      gates.remove(Calls)
      await Promise.all(stores.map((store) => store.close()))
      await removePrefix(serverUrl('redis') ?? '', prefix)
    })
    const [one, other, third] = [0, 1, 2].map(
      (at) => new Proxy({}, { get: (_, key) => Reflect.get(stores[at] ?? {}, key) }),
    ) as [Store, Store, Store]

    const run = (about: string, once: (race: Race) => Promise<void>): void => {
      test(about, async (t) => {
        t.diagnostic(`seed ${SEED}`)
        await inAllOrders(
          async (path) => {
            await once((sessions, deaths) => gates.race(path, sessions, deaths))
            return true
          },
          { most: MOST_ORDERS, random },
        )
      })
    }

    for (const ending of ['complete', 'dead', 'cancel', 'remove'] as const) {
      run(`a push of a child, and its parent's end: ${ending}`, async (race) => {
        const parent = newJob({ queue: 'p', attempts: 1 })
        await one.operations.push({ jobs: [parent] })
        const child = newJob({ queue: 'c', after: [parent.id] })
        const [outcomes] = await race([
          () => one.operations.push({ jobs: [child] }),
          await endingOf(other, parent, ending),
        ])
        const [outcome] = fulfilled<PushOutcome[]>(outcomes)
        await sweepAll(third)
        const state = await stateOf(third, child.id)
        if (outcome?.status === 'orphan') assert.deepEqual([ending, state], ['remove', undefined])
        else assert.equal(state, ending === 'complete' ? 'waiting' : 'cancelled')
        await clear(third)
      })
    }

    run('the ends of the last two parents', async (race) => {
      const parents = [newJob({ queue: 'p' }), newJob({ queue: 'q' })]
      const child = newJob({ queue: 'c', after: parents.map(({ id }) => id) })
      await one.operations.push({ jobs: [...parents, child], whole: true })
      const [first, second] = parents
      assert.ok(first && second)
      await race([await endingOf(one, first, 'complete'), await endingOf(other, second, 'complete')])
      assert.deepEqual(
        (await claim(third, { queue: 'c' })).jobs.map(({ id }) => id),
        [child.id],
      )
      await clear(third)
    })

    run('a push within a job, and the end of that job', async (race) => {
      const whole = newJob({ queue: 'p' })
      const next = newJob({ queue: 'c', after: [whole.id] })
      await one.operations.push({ jobs: [whole, next] })
      const part = newJob({ queue: 'q', partOf: whole.id })
      const [outcomes] = await race([
        () => one.operations.push({ jobs: [part] }),
        await endingOf(other, whole, 'complete'),
      ])
      const [outcome] = fulfilled<PushOutcome[]>(outcomes)
      await sweepAll(third)
      const isPart = outcome?.status === 'pushed'
      assert.equal(outcome?.status, isPart ? 'pushed' : 'orphan')
      assert.equal(await stateOf(third, next.id), isPart ? 'blocked' : 'waiting')
      assert.equal(await stateOf(third, part.id), isPart ? 'waiting' : undefined)
      if (isPart) await (await endingOf(third, part, 'complete'))()
      assert.equal(await stateOf(third, next.id), 'waiting')
      await clear(third)
    })

    run('a sweep takes a slow push for dead', async (race) => {
      const jobs = graph()
      const push = () => one.operations.push({ jobs, whole: true })
      const late = async () => {
        // The race begins with this look, so that the push may have come to any step by then.
        await stateOf(other, newJob().id)
        clock.now += DEFAULTS.graph.decide + 1
        await sweepAll(other)
      }
      const [pushed] = await race([push, late])
      await sweepAll(third)
      await assertWhole(third, jobs, pushed?.status === 'fulfilled')
      await clear(third)
    })

    test('a client dies after each step of a push, and two others sweep', async () => {
      for (let deaths = 0; deaths < DEATHS; deaths++) {
        const jobs = graph()
        await inAllOrders(
          async (path) => {
            await gates.race(path, [() => one.operations.push({ jobs, whole: true })], [deaths])
            return true
          },
          { most: 1, random },
        )
        clock.now += DEFAULTS.graph.decide + 1
        await inAllOrders(
          async (path) => {
            await gates.race(path, [() => sweepAll(other), () => sweepAll(third)])
            return true
          },
          { most: 1, random },
        )
        await assertWhole(third, jobs, undefined)
        await clear(third)
      }
    })

    test('a client dies after each step of an ending', async () => {
      for (let deaths = 1; deaths < 4; deaths++) {
        const parent = newJob({ queue: 'p' })
        const child = newJob({ queue: 'c', after: [parent.id] })
        await one.operations.push({ jobs: [parent, child] })
        const end = await endingOf(one, parent, 'complete')
        await inAllOrders(
          async (path) => {
            await gates.race(path, [end], [deaths])
            return true
          },
          { most: 1, random },
        )
        clock.now += 2000
        await sweepAll(other)
        assert.equal(await stateOf(third, child.id), 'waiting', `after ${deaths} steps`)
        await clear(third)
      }
    })
  })
}

/** Roots and children in three queues. */
function graph(): NewJob[] {
  const roots = [newJob({ queue: 'p' }), newJob({ queue: 'q' })]
  const child = newJob({ queue: 'c', after: roots.map(({ id }) => id) })
  return [...roots, child, newJob({ queue: 'q', after: [child.id] })]
}

function fulfilled<T>(settled: PromiseSettledResult<unknown> | undefined): T {
  assert.equal(settled?.status, 'fulfilled', settled?.status === 'rejected' ? String(settled.reason) : '')
  return (settled as PromiseFulfilledResult<T>).value
}

/** To be called in the race; the claim before it is not raced. */
async function endingOf(
  { operations }: Store,
  { id, queue }: NewJob,
  ending: 'complete' | 'dead' | 'cancel' | 'remove',
): Promise<() => Promise<unknown>> {
  if (ending === 'cancel') return () => operations.cancel({ ids: [id] })
  if (ending === 'remove') return () => operations.remove({ ids: [id] })
  const { jobs } = await operations.claim({ queue, worker: 'w', limit: 100, lease: 1e9, minPriority: 0, perGroup: 1 })
  const hold = jobs.find((job) => job.id === id)
  assert.ok(hold !== undefined, `${id} does not wait`)
  const error = { code: 'HandlerFailed', name: 'Error', message: 'no' }
  if (ending === 'complete') return () => operations.complete({ queue, items: [{ ...hold, result: null }] })
  return () => operations.fail({ queue, items: [{ ...hold, error, delay: null }] })
}

async function sweepAll({ operations }: Store): Promise<void> {
  while ((await operations.sweep({ limit: 100 })).more);
}

const stateOf = async ({ operations }: Store, id: string) => (await operations.find({ ids: [id] }))[0]?.state

/** All jobs are there and can run, or none is. @param expected undefined: either */
async function assertWhole(store: Store, jobs: readonly NewJob[], expected: boolean | undefined): Promise<void> {
  const states = await Promise.all(jobs.map(({ id }) => stateOf(store, id)))
  const isThere = expected ?? states[0] !== undefined
  const [p, q, c, last] = ['waiting', 'waiting', 'blocked', 'blocked']
  assert.deepEqual(states, isThere ? [p, q, c, last] : [undefined, undefined, undefined, undefined])
  if (!isThere) return
  for (const job of jobs) await (await endingOf(store, job, 'complete'))()
  assert.equal(await stateOf(store, jobs.at(-1)?.id ?? ''), 'done')
}

/** Nothing is left of a graph that was not decided. */
async function clear({ operations }: Store): Promise<void> {
  for (const queue of ['p', 'q', 'c']) {
    for (const state of ['blocked', 'waiting', 'running', 'done', 'dead', 'cancelled'] as const)
      while ((await operations.remove({ queue, state, limit: 100 })).more);
  }
}
