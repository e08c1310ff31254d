/** Fresh stores that programs in two languages open. */

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { missingReason, serverUrl } from '../servers/shared.ts'

export interface Place {
  url: string
  /** Of `Millpond.open`, and of Python's `open_store`. */
  options: Record<string, string>
  /** Removed after the test. */
  folder: string
}

interface MixedStore {
  name: string
  skip: string | false
  place(t: TestContext): Place
}

function place(t: TestContext, url: (folder: string) => string, options: Record<string, string>): Place {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-mixed-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return { url: url(folder), options, folder }
}

const token = () => randomUUID().slice(0, 8)

export const mixedStores: readonly MixedStore[] = [
  { name: 'sqlite', skip: false, place: (t) => place(t, (folder) => `sqlite:${join(folder, 'jobs.db')}`, {}) },
  {
    name: 'postgres',
    skip: missingReason('postgres'),
    place: (t) => place(t, () => serverUrl('postgres') ?? '', { schema: `mixed_${token()}` }),
  },
  {
    name: 'redis',
    skip: missingReason('redis'),
    place: (t) => place(t, () => serverUrl('redis') ?? '', { prefix: `mixed-${token()}` }),
  },
]
