/** What the tests of the SQLite store share: a folder of their own, jobs, and programs run beside this one. */
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after } from 'node:test'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import type { Bell, Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/sqlite/index.ts'
import { sharedFolder } from '../support/cleaning.ts'

const MODULE = new URL('../../src/stores/sqlite/index.ts', import.meta.url).href
const folder = sharedFolder()
const stores: Store[] = []
let count = 0

after(async () => {
  await Promise.all(stores.map((store) => store.close()))
  rmSync(folder, { recursive: true, force: true })
})

/** Of a file that isn't there yet. */
export const newPath = (): string => join(folder, `${++count}.db`)

export async function openAt(path: string, options: StoreOptions = {}): Promise<Store> {
  const store = await open(`sqlite:${path}`, options)
  stores.push(store)
  return store
}

export function connectTo(path: string): DatabaseSync {
  return new DatabaseSync(path)
}

/** What the tests need of a connection of the application's. */
export interface Library {
  prepare(sql: string): { get(...values: string[]): unknown }
  exec(sql: string): unknown
  close(): unknown
}

/** The libraries that a store runs on, and connections of the application's by each. */
export const LIBRARIES = [
  {
    library: 'sqlite',
    driver: undefined,
    connect: (path: string): Library => new DatabaseSync(path),
    /** With settings that give rows in other shapes. */
    otherwise: (path: string): Library => new DatabaseSync(path, { readBigInts: true, returnArrays: true }),
  },
  {
    library: 'better-sqlite3',
    driver: Database,
    connect: (path: string): Library => new Database(path),
    otherwise: (path: string): Library => new Database(path).defaultSafeIntegers(true),
  },
] as const

export { job } from './job.ts'

/** Resolves with the first bell of a kind; the test's own timeout tells when there is none. */
export function bell(store: Store, kind: Bell['kind']): Promise<Bell> {
  return new Promise((resolve) => {
    // A store that only listens keeps no process alive; this test is to wait.
    const alive = setInterval(() => {}, 60_000)
    const stop = store.listen((rung) => {
      if (rung.kind !== kind) return
      stop()
      clearInterval(alive)
      resolve(rung)
    })
  })
}

/** Runs a module in another process, with `open` and `job(id)` at hand; resolves with what it printed. */
export async function program(code: string, shell = ''): Promise<string> {
  const prelude = `import { open } from ${JSON.stringify(MODULE)}
    const job = (id, body = '{}') => ({ id, queue: 'emails', priority: 4, delay: 0, runAt: null, key: null, group: null,
      attempts: 3, timeout: null, trace: null, data: { encoding: 'json', body } })\n`
  const run = promisify(execFile)
  const { stdout } = await run(
    'sh',
    ['-c', `${shell}\nexec "$0" --input-type=module -e "$1"`, process.execPath, prelude + code],
    { timeout: 60_000 },
  )
  return stdout.trim()
}
