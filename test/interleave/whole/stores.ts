/** Memory, SQLite and Redis as several processes have them. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Store } from '../../../src/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { newJob } from '../../conformance/suite.ts'
import { freshPrefix, removePrefix } from '../../stores/redis-fixture.ts'
import { clock } from '../world.ts'
import { WholeArena } from './arena.ts'

/** One for each session, and one for the process that sleeps. */
const PROCESSES = 4
const options = { clock: () => clock.now }

async function opened(url: string): Promise<{ stores: Store[]; close(): Promise<void> }> {
  // The first makes what the others find.
  const stores = [await openStore(url, options)]
  while (stores.length < PROCESSES) stores.push(await openStore(url, options))
  return {
    stores,
    async close() {
      await Promise.all(stores.map((store) => store.close()))
    },
  }
}

export async function memory(): Promise<WholeArena> {
  const store = await openStore('memory:', options)
  return new WholeArena({ stores: [store], close: () => store.close() })
}

export async function sqlite(): Promise<WholeArena> {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-'))
  const path = join(folder, 'test.db')
  const { stores, close } = await opened(`sqlite:${path}`)
  const callers = stores.map(() => new DatabaseSync(path, { timeout: 10_000 }))
  const [first] = stores
  return new WholeArena({
    stores,
    mark: async (queue) => first?.push([newJob({ queue, id: crypto.randomUUID().replace(/-4/, '-7') })]),
    async pushInTransaction(session, jobs) {
      const caller = callers[session]
      caller?.exec('begin immediate')
      return (await stores[session]?.transactions?.push(caller, jobs)) ?? []
    },
    commit: (session) => callers[session]?.exec('commit'),
    async close() {
      for (const caller of callers) caller.close()
      await close()
      await rm(folder, { recursive: true, force: true })
    },
  })
}

export async function redis(url: string): Promise<WholeArena> {
  const prefix = freshPrefix()
  const { stores, close } = await opened(`${url}?prefix=${prefix}`)
  const [first] = stores
  return new WholeArena({
    stores,
    forgets: 5000,
    mark: async (queue) => first?.configure({ queue, paused: false }),
    async close() {
      await close()
      await removePrefix(url, prefix)
    },
  })
}
