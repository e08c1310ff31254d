/** Each store as several processes have it: a store object for each, on one place, with the clock of `world.ts`. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { giveBackSchema, takeSchema } from '../stores/postgres-fixture.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'
import { clock } from './world.ts'

/** A transaction of the caller's, open until it commits. */
export interface Caller {
  push(jobs: readonly NewJob[]): Promise<unknown>
  commit(): Promise<unknown>
  close(): Promise<unknown>
}

export interface Processes {
  /** As many as were asked for; the memory store has one for all. */
  readonly stores: readonly Store[]
  /** Begins a transaction. Unset: the store has none. */
  begin?(store: Store): Promise<Caller>
  close(): Promise<void>
}

export interface Place {
  name: string
  /** Why it cannot be opened here. */
  skip: string | false
  open(count: number): Promise<Processes>
}

const options = { clock: () => clock.now }

async function openAll(url: string, count: number, given: object = {}): Promise<Processes> {
  // The first makes what the others find.
  const stores = [await openStore(url, { ...options, ...given })]
  while (stores.length < count) stores.push(await openStore(url, { ...options, ...given }))
  return {
    stores,
    async close() {
      await Promise.all(stores.map((store) => store.close()))
    },
  }
}

async function sqlite(count: number): Promise<Processes> {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-'))
  const path = join(folder, 'test.db')
  // On a loaded machine a caller's transaction may take its time.
  const { stores, close } = await openAll(`sqlite:${path}`, count, { busyTimeout: 60_000 })
  return {
    stores,
    async begin(store) {
      const caller = new DatabaseSync(path, { timeout: 10_000 })
      caller.exec('begin immediate')
      return {
        push: async (jobs) => store.transactions?.push({ tx: caller, jobs }),
        commit: async () => caller.exec('commit'),
        close: async () => caller.close(),
      }
    },
    async close() {
      await close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function postgres(count: number): Promise<Processes> {
  const url = serverUrl('postgres') ?? ''
  const schema = takeSchema()
  const { stores, close } = await openAll(url, count, { schema })
  return {
    stores,
    async begin(store) {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query('begin')
      return {
        push: async (jobs) => store.transactions?.push({ tx: client, jobs }),
        commit: () => client.query('commit'),
        close: () => client.end(),
      }
    },
    async close() {
      await close()
      await giveBackSchema(schema)
    },
  }
}

async function redis(count: number): Promise<Processes> {
  const url = serverUrl('redis') ?? ''
  const prefix = freshPrefix()
  const { stores, close } = await openAll(`${url}?prefix=${prefix}`, count)
  return {
    stores,
    async close() {
      await close()
      await removePrefix(url, prefix)
    },
  }
}

export const PLACES: readonly Place[] = [
  {
    name: 'memory',
    skip: false,
    async open() {
      const { stores, close } = await openAll('memory:', 1)
      return { stores, close }
    },
  },
  { name: 'sqlite', skip: false, open: sqlite },
  { name: 'redis', skip: missingReason('redis'), open: redis },
  { name: 'postgres', skip: missingReason('postgres'), open: postgres },
]
