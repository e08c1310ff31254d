/** What the tests of the PostgreSQL store share: a schema of its own for each store, and ways to look at the server. */
import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import type { NewJob, Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/postgres.ts'
import { serverUrl } from '../servers/shared.ts'

export function urlOf(server: 'postgres' | 'pgbouncer'): string {
  const url = serverUrl(server)
  if (url === undefined) throw new Error(`${server} is not there`)
  return url
}

export const newSchema = (): string => `mp_${process.pid}_${randomBytes(5).toString('hex')}`

let shared: postgres.Sql | undefined

/** A connection of the tests' own, straight to the server. */
export function server(): postgres.Sql {
  shared ??= postgres(urlOf('postgres'), { max: 1, onnotice: () => {}, idle_timeout: 1 })
  return shared
}

export async function dropSchema(schema: string): Promise<void> {
  await server().unsafe(`drop schema if exists ${schema} cascade`)
}

/** A fresh store in a schema of its own, which goes with it. */
export async function openPostgres(
  url: string,
  options: StoreOptions = {},
): Promise<{ store: Store; schema: string; dispose: () => Promise<void> }> {
  const schema = newSchema()
  const store = await open(url, { schema, ...options })
  return {
    store,
    schema,
    async dispose() {
      await store.close()
      await dropSchema(schema)
    },
  }
}

let count = 0

export function job(fields: Partial<NewJob> = {}): NewJob {
  return {
    id: `00000000-0000-7000-8000-${String(++count).padStart(12, '0')}`,
    queue: 'emails',
    priority: 4,
    delay: 0,
    runAt: null,
    key: null,
    group: null,
    attempts: 3,
    timeout: null,
    trace: null,
    data: { encoding: 'json', body: '{"to":"a@example.org"}' },
    ...fields,
  }
}
