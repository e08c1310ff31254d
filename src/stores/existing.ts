/** Opens a store to read what it has. A path that was mistyped must not make an empty store. */
import { existsSync } from 'node:fs'
import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { schemaState } from './doctor.ts'
import { durableUrl, openStore } from './open.ts'
import { shardsIn } from './shard-urls.ts'

/** @throws StoreUnavailable: there is no such SQLite file. InvalidOption: memory is empty at the start of a process. As `openStore` does */
export async function openExisting(url: unknown): Promise<Store> {
  await assertExists(url)
  const store = await openStore(url, {})
  if (isLasting(store)) return store
  await store.close()
  throw new MillpondError('InvalidOption', 'memory: of this process is empty; give the URL of a durable store')
}

/** @throws StoreUnavailable */
export async function assertExists(given: unknown): Promise<void> {
  for (const one of shardsIn(given).urls) {
    const url = durableUrl(String(one))
    if (!/^sqlite:/i.test(url)) continue
    const { settingsOf } = await import('./sqlite/settings.ts')
    const { path } = settingsOf(url, {})
    if (!existsSync(path))
      throw new MillpondError('StoreUnavailable', `there is no SQLite file ${path}; look at the path`)
  }
}

/** Only these have tables, which opening the store would bring up to date. */
const WITH_TABLES = /^(sqlite|postgres|postgresql):/i

/**
 * For whoever only looks: an older program could not start any more on tables that were brought up to date by the way.
 * @throws StoreVersion: the tables are older than this release. StoreUnavailable: there are none. As `schemaState` does
 */
export async function assertMigrated(given: unknown): Promise<void> {
  for (const url of shardsIn(given).urls) await assertOneMigrated(String(url))
}

async function assertOneMigrated(given: string): Promise<void> {
  const url = durableUrl(given)
  if (!WITH_TABLES.test(url)) return
  await assertExists(url)
  const { found, newest } = await schemaState(url)
  if (found === 0) {
    const message =
      'the store has no tables of Millpond, or none that this role may see; millpond migrate makes them. Nothing was changed'
    throw new MillpondError('StoreUnavailable', message)
  }
  if (found >= newest) return
  const message =
    `the store has tables of version ${found}, this command needs version ${newest}: millpond migrate brings them up to date, ` +
    'and programs of the old version cannot start anew then; or use the command of their version. Nothing was changed'
  throw new MillpondError('StoreVersion', message)
}

/** Whether jobs are still there after its process has ended. */
export function isLasting({ capabilities: { durable, spill } }: Store): boolean {
  return durable || spill
}
