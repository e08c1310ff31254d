/** Opens a store to read what it has. A path that was mistyped must not make an empty store. */
import { existsSync } from 'node:fs'
import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors.ts'
import { openStore } from './open.ts'

/** @throws StoreUnavailable: there is no such SQLite file. InvalidOption: memory is empty at the start of a process. As `openStore` does */
export async function openExisting(url: unknown): Promise<Store> {
  await assertExists(url)
  const store = await openStore(url, {})
  if (isLasting(store)) return store
  await store.close()
  throw new MillpondError('InvalidOption', 'memory: of this process is empty; give the URL of a durable store')
}

/** @throws StoreUnavailable */
export async function assertExists(url: unknown): Promise<void> {
  if (!/^sqlite:/i.test(String(url))) return
  const { settingsOf } = await import('./sqlite/settings.ts')
  const { path } = settingsOf(String(url), {})
  if (!existsSync(path))
    throw new MillpondError('StoreUnavailable', `there is no SQLite file ${path}; look at the path`)
}

/** Whether jobs are still there after its process has ended. */
export function isLasting({ capabilities: { durable, spill } }: Store): boolean {
  return durable || spill
}
