/**
 * What PostgreSQL reads for 100 jobs while an old transaction keeps vacuum away, and what it reads without one: entries of indexes and rows
 * of tables, in the first and in the last fifth of the jobs. Counts, so that a busy machine changes nothing.
 */
import pg from 'pg'
import type { Operations } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { newJobs } from '../../test/support/jobs.ts'
import { until } from '../../test/support/until.ts'
import type { Experiment, Row } from '../experiment.ts'
import { whole } from '../flags.ts'
import { tell } from '../progress.ts'

const BATCH = 100
const FIFTHS = 5
/** Cycles of a batch between two sweeps. */
const SWEEP_EVERY = 5
const QUEUE = 'q'

interface Case {
  name: string
  settings?: Omit<Parameters<Operations['configure']>[0], 'queue'>
  /** A batch of jobs, pushed, claimed and completed. */
  batch(operations: Operations): Promise<void>
}

const grouped = (jobs: NewJob[]): NewJob[] => jobs.map((job, n) => ({ ...job, group: `g${n % 50}` }))
const chained = (jobs: NewJob[]): NewJob[] =>
  jobs.map((job, n) => (n % 10 === 0 ? job : { ...job, after: [jobs[n - 1]?.id ?? ''] }))

const together = (change: (jobs: NewJob[]) => NewJob[]) => async (operations: Operations) => {
  await operations.push({ jobs: change(newJobs(BATCH)) })
  await workOff(operations, BATCH)
}
const singly = (change: (jobs: NewJob[]) => NewJob[], before?: (operations: Operations) => Promise<unknown>) => {
  return async (operations: Operations) => {
    for (let n = 0; n < BATCH; n++) {
      await before?.(operations)
      await operations.push({ jobs: change(newJobs(1)) })
      await workOff(operations, 1)
    }
  }
}
const same = (jobs: NewJob[]): NewJob[] => jobs
const claim = (operations: Operations) => operations.claim({ queue: QUEUE, worker: 'w', limit: BATCH, lease: 600_000 })

const CASES: readonly Case[] = [
  { name: 'plain', batch: together(same) },
  { name: 'groups, `running: 2` of each', settings: { groupRunning: 2 }, batch: together(grouped) },
  { name: 'groups in turns', settings: { grouped: true }, batch: together(grouped) },
  {
    name: 'groups, a rate of each',
    settings: { groupRate: { count: 100_000, per: 1000, burst: 1000 } },
    batch: together(grouped),
  },
  { name: '`running: 50` of the queue', settings: { running: 50 }, batch: together(same) },
  { name: 'chains of ten', batch: together(chained) },
  { name: 'one key again and again', batch: singly((jobs) => jobs.map((job) => ({ ...job, key: 'k' }))) },
  { name: 'an idle worker, woken by each push', batch: singly(same, claim) },
]

async function workOff(operations: Operations, count: number): Promise<void> {
  for (let done = 0; done < count; ) {
    const { jobs } = await claim(operations)
    if (jobs.length === 0) await operations.sweep({ limit: 1000 })
    const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
    if (items.length > 0) await operations.complete({ queue: QUEUE, items })
    done += items.length
  }
}

const flags = { jobs: whole('of each case', '30k', '1000') }

export const horizon: Experiment<typeof flags> = {
  id: 'horizon',
  flags,
  about: ({ jobs }) =>
    `${jobs.toLocaleString('en')} jobs of each kind. Entries of indexes and rows of tables that PostgreSQL reads for ${BATCH} of them, in the ` +
    'first and in the last fifth, with an old transaction open and without one.',
  async *measure({ jobs }, stage) {
    const url = await (await stage.place('postgres')).fresh()
    const rows: Row[] = []
    for (const one of CASES) {
      tell(one.name)
      const free = await measured(url, one, jobs, false)
      const pinned = await measured(url, one, jobs, true)
      const shown = (read: Read) => Math.round(read.all).toLocaleString('en')
      rows.push({
        cells: [one.name, ...[free.first, free.last, pinned.first, pinned.last].map(shown), pinned.last.most],
        bars: [],
        figures: { name: one.name, free, pinned },
      })
    }
    const head = ['100 jobs', 'free, first', 'free, last', 'pinned, first', 'pinned, last', 'most of these']
    yield { head, text: ['most of these'], rows }
  },
}

interface Read {
  /** For a batch. */
  all: number
  /** The indexes that are read most. */
  most: string
}

async function measured(url: string, { settings, batch }: Case, jobs: number, isPinned: boolean) {
  const schema = `horizon_${Math.random().toString(36).slice(2, 8)}`
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  const [old, watcher] = [new pg.Client(url), new pg.Client(url)]
  await Promise.all([old.connect(), watcher.connect()])
  const store = await open(url, { schema, client: pool })
  // A process that listens is noted as asleep. It hears of the queues that it has claimed from once it listens.
  let isHeard = false
  await claim(store.operations)
  store.listen(() => {
    isHeard = true
  })
  await until(() => isHeard, 'it to listen')
  if (settings !== undefined) await store.operations.configure({ queue: QUEUE, ...settings })
  if (isPinned) await old.query('begin isolation level repeatable read')
  await old.query('select 1')
  const look = lookAt(pool, watcher, schema)
  await look()
  const batches = Math.ceil(jobs / BATCH / FIFTHS)
  const fifths: Read[] = []
  for (let fifth = 0; fifth < FIFTHS; fifth++) {
    for (let n = 0; n < batches; n++) {
      await batch(store.operations)
      if (n % SWEEP_EVERY === 0) await store.operations.sweep({ limit: 1000 })
    }
    const read = (await look()).map(({ name, count }) => ({ name, count: count / batches }))
    const most = read.slice(0, 2).map(({ name, count }) => `${name} ${Math.round(count).toLocaleString('en')}`)
    fifths.push({ all: read.reduce((sum, { count }) => sum + count, 0), most: most.join(', ') })
  }
  await Promise.all([store.close(), old.end()])
  await pool.end()
  await watcher.query(`drop schema ${schema} cascade`)
  await watcher.end()
  const none: Read = { all: Number.NaN, most: '' }
  return { first: fifths[0] ?? none, last: fifths.at(-1) ?? none }
}

/** @returns a function that tells what was read since its last call, by index or table, the most first. Needs PostgreSQL 15 */
function lookAt(pool: pg.Pool, watcher: pg.Client, schema: string) {
  let before = new Map<string, number>()
  return async () => {
    const clients = await Promise.all([pool.connect(), pool.connect()])
    for (const client of clients) await client.query('select pg_stat_force_next_flush()')
    for (const client of clients) client.release()
    const { rows } = await watcher.query<{ name: string; count: string }>(
      `select indexrelname as name, idx_tup_read as count from pg_stat_user_indexes where schemaname = $1
      union all select relname, seq_tup_read from pg_stat_user_tables where schemaname = $1`,
      [schema],
    )
    const now = new Map(rows.map(({ name, count }) => [name, Number(count)]))
    const since = [...now].map(([name, count]) => ({ name, count: count - (before.get(name) ?? 0) }))
    before = now
    return since.sort((one, other) => other.count - one.count)
  }
}
