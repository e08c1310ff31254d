/** Fresh stores that programs in two languages open. */

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { missingReason, serverUrl } from '../servers/shared.ts'

export interface Place {
  url: string
  /** Of `Millpond.open`, and of Python's `open_store`. */
  options: Record<string, string>
  /** Removed after all tests of the file, when no process uses it any more. */
  folder: string
}

interface MixedStore {
  name: string
  skip: string | false
  place(): Place
}

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function place(url: (folder: string) => string, options: Record<string, string>): Place {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-mixed-'))
  folders.push(folder)
  return { url: url(folder), options, folder }
}

const token = () => randomUUID().slice(0, 8)

export const mixedStores: readonly MixedStore[] = [
  { name: 'sqlite', skip: false, place: () => place((folder) => `sqlite:${join(folder, 'jobs.db')}`, {}) },
  {
    name: 'postgres',
    skip: missingReason('postgres'),
    place: () => place(() => serverUrl('postgres') ?? '', { schema: `mixed_${token()}` }),
  },
  {
    name: 'redis',
    skip: missingReason('redis'),
    place: () => place(() => serverUrl('redis') ?? '', { prefix: `mixed-${token()}` }),
  },
]
