/**
 * The stores under test. A store joins the whole suite by being listed here, and by nothing else.
 * A store that cannot be opened here says why in `skip`; the suite prints that.
 */

import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { OpenStore, Store, StoreOptions } from '../../src/store.ts'
import { missingReason, type SharedServer, serverUrl } from '../servers/shared.ts'
import { openEmptied, pool } from '../stores/postgres-fixture.ts'
import { openRabbitmq } from '../stores/rabbitmq-fixture.ts'
import { openRedis } from '../stores/redis-fixture.ts'
import { openPlainStore } from '../support/plain-store.ts'
import { openPostgresShards, openRedisShards, openSqliteShards } from '../support/sharded.ts'
import { openSpilling } from '../support/spilling.ts'
import { isInThisRun } from '../support/variants.ts'

export interface Opened {
  store: Store
  /** Closes the store, if it isn't yet, and removes every trace of it. */
  dispose(): Promise<void>
}

export interface StoreUnderTest {
  name: string
  /** A fresh, empty store. */
  open(options?: StoreOptions): Promise<Opened>
  /** Why it cannot be tested here; false: it can. */
  skip: string | false
  /** How many random sequences the model-based test runs on it: what its speed allows. */
  modelRuns: number
  /** One of so many vectors is replayed, as the statements and scripts are those of another store; 1 unless set. */
  sample?: number
  /** Why jobs become due by another clock than that of the options: tests that set the clock for delays are skipped with this reason. */
  ownClock?: string
  /** Why it answers otherwise than these vectors want: by the vector's name, or by the capability that the vectors need. */
  differs?: Record<string, string>
}

/** Loaded by path when needed, so that a missing store skips its own tests and no others. */
async function load(module: string): Promise<OpenStore> {
  const { open }: { open: OpenStore } = await import(new URL(module, import.meta.url).href)
  return open
}

const missing = (module: string): string | false =>
  existsSync(new URL(module, import.meta.url)) ? false : `${module} is not there`

const MEMORY = '../../src/stores/memory/index.ts'
const SQLITE = '../../src/stores/sqlite/index.ts'

function redis(name: 'redis' | 'redis-cluster', modelRuns: number, sample = 1): StoreUnderTest {
  return {
    name,
    sample,
    skip: missingReason(name),
    modelRuns,
    open: (options = {}) => openRedis(urlOf(name), options),
  }
}

function postgres(name: 'postgres' | 'pgbouncer', modelRuns: number, sample = 1): StoreUnderTest {
  return {
    name,
    sample,
    skip: missingReason(name),
    modelRuns,
    open: (options = {}) => openEmptied(urlOf(name), name === 'postgres' ? { client: pool(), ...options } : options),
  }
}

/** @param driver its options that choose the library */
function sqlite(name: string, driver: StoreOptions, modelRuns: number, sample = 1): StoreUnderTest {
  return {
    name,
    sample,
    skip: missing(SQLITE),
    modelRuns,
    async open(options = {}) {
      const folder = await mkdtemp(join(tmpdir(), 'millpond-'))
      const store = await (await load(SQLITE))(`sqlite:${join(folder, 'test.db')}?sync=normal`, {
        ...options,
        ...driver,
      })
      return {
        store,
        async dispose() {
          await store.close()
          await rm(folder, { recursive: true, force: true })
        },
      }
    },
  }
}

/** Three stores as one. */
function sharded(
  name: string,
  skip: string | false,
  open: (options: StoreOptions) => Promise<Opened>,
  isDeep = true,
): StoreUnderTest {
  const deep = isDeep && process.env.MILLPOND_TEST_DEEP === undefined && 'in the deep run alone'
  return {
    name,
    skip: skip || deep,
    modelRuns: 0,
    sample: 4,
    differs: {
      'ids of all queues': 'a shard knows its own ids',
      'duplicate-id-elsewhere': 'a shard knows its own ids',
      'sweep-limit': 'a sweep does so much in each store',
      'sweep-limit-lost': 'a sweep does so much in each store',
      'graph-restore': 'a restored job waits for jobs of its own store alone',
    },
    open: (options = {}) => open(options),
  }
}

function urlOf(server: SharedServer): string {
  const url = serverUrl(server)
  if (url === undefined) throw new Error(`${server} is not there`)
  return url
}

/** For what a store may lack: one that lacks all of it. */
export const plain: StoreUnderTest = {
  name: 'plain',
  skip: false,
  modelRuns: 0,
  async open(options = {}) {
    const store = openPlainStore(options)
    return { store, dispose: () => store.close() }
  },
}

/** For tests that any way to a store has to pass in every run. */
export const everyStore: readonly StoreUnderTest[] = [
  {
    name: 'memory',
    skip: missing(MEMORY),
    modelRuns: 1_500,
    async open(options = {}) {
      const store = await (await load(MEMORY))('memory:', options)
      return { store, dispose: () => store.close() }
    },
  },
  {
    name: 'spill',
    skip: false,
    modelRuns: 0,
    differs: {
      groups: 'groups take turns over the jobs in memory',
      'list-waiting-between': 'a job in memory comes before one that was spilled',
      'rate-cost': 'the hint when to claim again does not know the cost of a spilled job',
      'remove-state': 'jobs in memory are removed first',
      'restore-queue': 'a capacity is of the jobs in memory',
      'retry-after': 'sweeps look for scheduled jobs that were spilled, not claims',
      'sweep-limit': 'a sweep does so much in either store',
      'update-due': 'sweeps look for scheduled jobs that were spilled, not claims',
    },
    async open(options = {}) {
      const store = await openSpilling(options)
      return { store, dispose: () => store.close() }
    },
  },
  // Another way to the same statements and scripts is run by a sample.
  sqlite('sqlite', {}, 60),
  sqlite('better-sqlite3', { driver: Database }, 15, 10),
  redis('redis', 60),
  redis('redis-cluster', 15, 4),
  postgres('postgres', 40),
  postgres('pgbouncer', 10, 8),
  sharded('shards', missing(SQLITE), openSqliteShards, false),
  sharded('redis-shards', missingReason('redis'), (options) => openRedisShards(urlOf('redis'), options)),
  sharded('postgres-shards', missingReason('postgres'), (options) => openPostgresShards(urlOf('postgres'), options)),
  {
    name: 'rabbitmq',
    skip: missingReason('rabbitmq'),
    modelRuns: 0,
    ownClock: 'RabbitMQ delays jobs by its own clock, which a test cannot set',
    open: (options = {}) => openRabbitmq(urlOf('rabbitmq'), options),
  },
]

/** Those of this run: what `npm test` leaves out, `npm run test:deep` runs. */
export const stores: readonly StoreUnderTest[] = everyStore.filter(isInThisRun)
