/** A push of many jobs goes in a few statements, whatever they have: keys, ids of the caller's own, parents. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { open as openMemory } from '../../src/stores/memory/index.ts'
import type { NewJob, Once } from '../../src/values/jobs/records.ts'
import { seeded } from '../faults/harness.ts'
import { missingReason } from '../servers/shared.ts'
import { depth } from '../support/depth.ts'
import { newId } from '../support/jobs.ts'
import { job, openEmptied, server, urlOf, withStore } from './postgres-fixture.ts'

const MANY = 300
const ROUNDS = depth(15, 1000)

const skip = missingReason('postgres')

describe('a push of many jobs', { skip }, () => {
  const jobs = (each: (i: number) => Partial<NewJob>) => Array.from({ length: MANY }, (_, i) => job(each(i)))
  const waitForOne = (all: NewJob[]) => all.map((each, i) => (i === 0 ? each : { ...each, after: [all[0]?.id ?? ''] }))
  for (const [what, given] of [
    ['with keys', jobs((i) => ({ fresh: true, key: `k${i}` }))],
    ['with ids', jobs(() => ({}))],
    ['with both', jobs((i) => ({ key: `k${i}` }))],
    ['with keys that are remembered', jobs((i) => ({ key: `k${i}`, once: { unique: { for: 1000, since: 'end' } } }))],
    ['of several queues', jobs((i) => ({ queue: `q${i % 3}`, fresh: true, key: `k${i}` }))],
    ['that wait for one, with keys', waitForOne(jobs((i) => ({ fresh: true, key: `k${i}` })))],
    ['that wait for one, with ids', waitForOne(jobs(() => ({})))],
  ] as const)
    for (const whole of [false, true])
      test(`${what}${whole ? ', all or none' : ''}, is stored in few statements, and found in few`, () =>
        withStore(async (store, schema) => {
          const statements = await counting(schema)
          const first = await store.operations.push({ jobs: [...given], whole })
          assert.deepEqual(new Set(first.map(({ status }) => status)), new Set(['pushed']))
          assert.ok((await statements()) < 40, `${await statements()} statements`)
          const again = given.map((each) => (each.fresh === true ? { ...each, id: newId() } : each))
          const second = await store.operations.push({ jobs: again.map(({ after: _, ...rest }) => rest), whole })
          assert.deepEqual(
            second.map(({ status, id }) => [status, id]),
            given.map(({ id }) => ['existing', id]),
          )
          assert.ok((await statements()) < 80, `${await statements()} statements`)
        }))

  test('is answered, and stored, as on a store that takes one job after the other', async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      const clock = { now: 1_700_000_000_000 }
      const memory = await openMemory('memory:', { clock: () => clock.now })
      const { store, dispose } = await openEmptied(urlOf('postgres'), { clock: () => clock.now })
      try {
        assert.deepEqual(await play(store, round), await play(memory, round), `round ${round}`)
      } finally {
        await memory.close()
        await dispose()
      }
    }
  })
})

/** @returns how many statements changed the tables so far */
async function counting(schema: string): Promise<() => Promise<number>> {
  await server(`create sequence ${schema}.statements`)
  await server(`create function ${schema}.count_statement() returns trigger language plpgsql as $$
    begin perform nextval('${schema}.statements'); return null; end $$`)
  for (const table of ['waiting', 'keys', 'links', 'children', 'moves'])
    await server(`create trigger counted before insert or update or delete on ${schema}.${table}
      for each statement execute function ${schema}.count_statement()`)
  return async () => Number((await server(`select last_value from ${schema}.statements`))[0]?.last_value)
}

/** Pushes lists of odd jobs. @returns all that can be seen of them */
async function play({ operations }: Store, seed: number): Promise<unknown> {
  const random = seeded(seed)
  const below = (n: number) => Math.floor(random() * n)
  const one = <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value
  const ids = Array.from({ length: 14 }, (_, i) => `019b76da-a800-7000-8000-${String(i).padStart(12, '0')}`)
  const onces: (Once | undefined)[] = [
    undefined,
    undefined,
    { replace: true },
    { follow: true },
    { unique: { for: 60_000, since: 'end' } },
    { replace: true, maxWait: 500 },
  ]
  await operations.configure({ queue: 'small', capacity: 3 })
  await operations.configure({ queue: 'grouped', groupRunning: 1 })
  const seen: unknown[] = []
  for (let call = 0; call < 4; call++) {
    const jobs = Array.from({ length: 2 + below(8) }, (): NewJob => {
      const key = below(2) === 0 ? null : `k${below(5)}`
      const once = key === null ? undefined : one(onces)
      const after = below(3) === 0 && once === undefined ? Array.from({ length: 1 + below(2) }, () => one(ids)) : []
      const partOf = below(9) === 0 && once === undefined ? one(ids) : undefined
      const delay = below(4) === 0 ? 1000 : 0
      return job({
        ...{ id: one(ids), queue: one(['plain', 'plain', 'small', 'grouped']), key, delay, after },
        ...{ ...(once && { once }), ...(partOf && { partOf }), group: one([null, 'g', 'h']), priority: 4 + below(2) },
        ...(below(5) === 0 && { onDead: 'run' as const }),
      })
    })
    seen.push(await operations.push({ jobs, whole: below(4) === 0 }))
    const queue = one(['plain', 'small', 'grouped'])
    const { jobs: claimed } = await operations.claim({ queue, worker: 'w', limit: 1 + below(3), lease: 60_000 })
    seen.push(claimed.map(({ id }) => id))
    const items = claimed.filter(() => below(2) === 0).map(({ id, fence }) => ({ id, fence, result: null }))
    seen.push(await operations.complete({ queue, items }))
  }
  const records = await operations.find({ ids })
  seen.push(records.map((record) => record && [record.id, record.state, record.queue, record.key, record.dueAt]))
  seen.push(records.map((record) => [record?.waitsFor, record?.follows, record?.onDead]))
  for (const state of ['waiting', 'scheduled', 'blocked'] as const)
    for (const queue of ['plain', 'small', 'grouped'])
      seen.push((await operations.list({ queue, state, limit: 50 })).jobs.map(({ id }) => id))
  const stats = await operations.stats({})
  seen.push(stats.map(({ queue, counts }) => [queue, counts]).sort())
  return seen
}
