/**
 * Statistics that say that all tables are empty, while they hold many rows: no call that is made often looks at rows that it does not need.
 * Once with plans that were made while the tables were empty, once with plans that are made after they were filled.
 */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Operations } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { missingReason } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { ERROR } from '../support/jobs.ts'
import { dropSchema, job, newSchema, server, urlOf } from './postgres-fixture.ts'

/** Of each kind that the tables are filled with. */
const ROWS = depth(1500, 3000)
/** Jobs of a call. */
const FEW = 10
/** Rows and entries of indexes that a call may look at. */
const MOST = 1000
/** A sweep goes on through 500 parents and 500 children of graphs. */
const MOST_OF_SWEEPS = 2000
const LEASE = 600_000
const LATER = 3_600_000

/** Queues of all kinds, and what the nth of their jobs has. */
const KINDS: Readonly<Record<string, (n: number) => Partial<NewJob>>> = {
  plain: () => ({}),
  fresh: () => ({ fresh: true }),
  keyed: (n) => ({ key: `k${n}` }),
  once: (n) => ({ key: `k${n}`, once: { unique: { for: LATER, since: 'end' }, replace: true } }),
  grouped: (n) => ({ group: `g${n % 100}` }),
  limited: () => ({}),
  bounded: () => ({}),
  urgent: (n) => ({ priority: n % 10 }),
}
const QUEUES = Object.keys(KINDS)

let made = 0
const jobsOf = (queue: string, count: number, more: Partial<NewJob> = {}) =>
  Array.from({ length: count }, () => job({ queue, ...KINDS[queue]?.(++made), ...more }))

async function push(operations: Operations, all: readonly NewJob[]): Promise<void> {
  for (let at = 0; at < all.length; at += 500) await operations.push({ jobs: all.slice(at, at + 500) })
}

async function claim(operations: Operations, queue: string, count: number) {
  const claims = []
  while (claims.length < count) {
    const limit = Math.min(500, count - claims.length)
    const { jobs } = await operations.claim({ queue, worker: 'w', limit, lease: LEASE })
    if (jobs.length === 0) break
    claims.push(...jobs.map(({ id, fence }) => ({ id, fence, result: null, progress: null, error: ERROR })))
  }
  return claims
}

/** Many rows in every table. */
async function fill(operations: Operations): Promise<void> {
  await push(operations, jobsOf('busy', ROWS))
  await claim(operations, 'busy', ROWS)
  await push(operations, jobsOf('past', ROWS))
  const ended = await claim(operations, 'past', ROWS)
  await operations.complete({ queue: 'past', items: ended.slice(ROWS / 2) })
  await operations.fail({ queue: 'past', items: ended.slice(0, ROWS / 2).map((one) => ({ ...one, delay: null })) })
  const root = job({ queue: 'root', delay: LATER })
  await push(operations, [root, ...jobsOf('blocked', ROWS, { after: [root.id] })])
  for (const queue of QUEUES) {
    await push(operations, [...jobsOf(queue, ROWS / 2), ...jobsOf(queue, ROWS / 2, { delay: LATER })])
  }
}

const SCHEDULE: Declaration = {
  ...{ name: 'digest', version: '1', when: '@daily', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null },
  ...{ paused: false, again: false },
  job: {
    ...{ queue: 'timed', priority: 4, key: null, group: null, cost: 1, attempts: 3, timeout: null },
    data: { encoding: 'json', body: '1' },
  },
}

/** Calls that are made often, on each kind of queue. */
async function use(operations: Operations, over: (call: string) => Promise<void>): Promise<void> {
  for (const queue of QUEUES) await useQueue(operations, queue, (call) => over(`${call} of ${queue}`))
  await operations.claim({ queue: 'nothing', worker: 'w', limit: FEW, lease: LEASE })
  await over('claim of nothing')
  await operations.declare({ schedules: [{ ...SCHEDULE, version: String(++made) }] })
  await over('declare')
  // One sweep in ten seconds looks further than the others, and adds up what has gathered.
  await operations.sweep({ limit: 1000 })
  await over('first sweep')
  const { schedules } = await operations.sweep({ limit: 1000 })
  await over('sweep')
  for (const { name, version, nextAt } of schedules?.due ?? []) {
    const firing = { name, version, expected: nextAt ?? 0, next: (nextAt ?? 0) + LATER, jobs: jobsOf('timed', 1) }
    assert.deepEqual(
      (await operations.fire({ firings: [firing] })).map(({ status }) => status),
      ['fired'],
    )
    await over('fire')
  }
  const beat = { id: 'w', queue: 'plain', host: 'h', pid: 1, slots: 1, busy: 0, lanes: null }
  await operations.heartbeat({ workers: [beat], gone: [] })
  await over('heartbeat')
}

async function useQueue(operations: Operations, queue: string, over: (call: string) => Promise<void>): Promise<void> {
  const parents = jobsOf(queue, FEW, { priority: 9 })
  await operations.push({ jobs: parents })
  await over('push')
  await operations.push({ jobs: jobsOf(queue, FEW, { delay: LATER }) })
  await over('push with a delay')
  await operations.push({ jobs: parents.map(({ id }) => job({ queue: 'blocked', after: [id] })) })
  await over('push of children')
  for (const ending of ['complete', 'retry', 'die', 'release'] as const) {
    const items = await claim(operations, queue, FEW)
    assert.equal(items.length, FEW)
    await over('claim')
    await operations.extend({ queue, lease: LEASE, items })
    await over('extend')
    if (ending === 'complete') await operations.complete({ queue, items })
    else if (ending === 'release')
      await operations.release({ queue, items: items.map((one) => ({ ...one, pause: 0 })) })
    else {
      const delay = ending === 'die' ? null : 60_000
      await operations.fail({ queue, items: items.map((one) => ({ ...one, delay })) })
    }
    await over(ending)
  }
  const jobs = jobsOf(queue, FEW)
  const ids = jobs.map(({ id }) => id)
  await operations.push({ jobs })
  await over('push')
  await operations.find({ ids })
  await over('find')
  await operations.update({ items: ids.map((id) => ({ id, priority: 8 })) })
  await over('update')
  await operations.cancel({ ids })
  await over('cancel')
  assert.equal((await operations.requeue({ ids })).requeued, FEW)
  await over('requeue')
  await operations.remove({ ids })
  await over('remove')
}

describe('statistics of a moment at which all tables were empty', { skip: await reasonNotTo() }, () => {
  for (const plans of ['before', 'after'] as const) {
    test(`let no call look at the rows of others; plans made ${plans} the tables are filled`, async (t) => {
      const schema = newSchema()
      after(t, () => dropSchema(schema))
      const store = await opened(t, schema)
      const tables = async (statement: string) => {
        await server(`do $$ declare one regclass; begin
          for one in select oid from pg_class where relnamespace = '${schema}'::regnamespace and relkind = 'r' loop
            execute format('${statement}', one);
          end loop; end $$`)
      }
      await store.operations.configure({ queue: 'grouped', groupRunning: 1000 })
      await store.operations.configure({ queue: 'limited', running: 1_000_000 })
      await store.operations.configure({ queue: 'bounded', capacity: 10_000_000 })
      for (const queue of QUEUES) await push(store.operations, jobsOf(queue, 4 * FEW))
      await tables('alter table %s set (autovacuum_enabled = off)')
      if (plans === 'before') await use(store.operations, () => Promise.resolve())
      for (const queue of QUEUES) {
        for (const state of ['scheduled', 'waiting', 'dead', 'done'] as const) {
          while ((await store.operations.remove({ queue, state, limit: 1000 })).more);
        }
      }
      await tables('analyze %s')
      await fill(store.operations)
      await store.read()
      const calls = plans === 'before' ? store : await opened(t, schema)
      await calls.read()
      const large: string[] = []
      await use(calls.operations, async (call) => {
        const read = [...(await calls.read())]
        if (call === 'first sweep') return
        const all = read.reduce((sum, [, count]) => sum + count, 0)
        if (all <= (call === 'sweep' ? MOST_OF_SWEEPS : MOST)) return
        large.push(
          `${call}: ${read
            .sort((one, other) => other[1] - one[1])
            .slice(0, 3)
            .join(' ')}`,
        )
      })
      assert.deepEqual(large, [])
    })
  }
})

/** Since 15, a session can be told to report what it has read. */
async function reasonNotTo(): Promise<string | false> {
  const reason = missingReason('postgres')
  if (reason !== false) return reason
  const [row] = await server("select current_setting('server_version_num')::int >= 150000 as reports")
  return row?.reports === true ? false : 'PostgreSQL before 15 reports too late what a call has read'
}

/** A store, and what its calls have read since the last look, by table or index. */
async function opened(t: TestContext, schema: string) {
  const pool = new pg.Pool({ connectionString: urlOf('postgres'), max: 3 })
  after(t, () => pool.end())
  const { operations, close } = await open(urlOf('postgres'), { schema, client: pool })
  after(t, close)
  let before = new Map<string, number>()
  const read = async () => {
    const clients = await Promise.all([1, 2, 3].map(() => pool.connect()))
    for (const client of clients) await client.query('select pg_stat_force_next_flush()')
    for (const client of clients) client.release()
    const rows = await server(
      `select indexrelname as name, idx_tup_read as count from pg_stat_user_indexes where schemaname = $1
      union all select relname, seq_tup_read from pg_stat_user_tables where schemaname = $1`,
      [schema],
    )
    const now = new Map(rows.map(({ name, count }) => [String(name), Number(count)]))
    const since = [...now].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    before = now
    return new Map(since.filter(([, count]) => count > 0))
  }
  return { operations, read }
}
