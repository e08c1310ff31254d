/** Three stores of one kind as one, for the suites that all stores share. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenStore, Store, StoreOptions } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { openShards } from '../../src/stores/shards/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { giveBackSchema, pool, takeSchema } from '../stores/postgres-fixture.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'

const COUNT = 3

interface Opened {
  store: Store
  dispose(): Promise<void>
}

async function openMembers(
  members: readonly { url: string; options: StoreOptions }[],
  module: string,
  remove: () => Promise<unknown>,
): Promise<Opened> {
  const { open }: { open: OpenStore } = await import(new URL(module, import.meta.url).href)
  const openMember = (index: unknown) => {
    const { url, options } = members[Number(index)] as (typeof members)[number]
    return open(url, options)
  }
  const store = await openShards([...members.keys()], openMember, (member) => member)
  return {
    store: around(store, (_, input, next) => next(input).then(throwingAcross)),
    async dispose() {
      await store.close()
      await remove()
    },
  }
}

/** What a check cannot have of shards ends it. */
function throwingAcross<Out>(answer: Out): Out {
  const outcomes: readonly unknown[] = Array.isArray(answer) ? answer : []
  for (const one of outcomes) {
    const isFailed = typeof one === 'object' && one !== null && 'error' in one
    if (isFailed && isMillpondError(one.error, 'AcrossShards')) throw one.error
  }
  return answer
}

export async function openSqliteShards(options: StoreOptions): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-'))
  const members = Array.from({ length: COUNT }, (_, shard) => {
    return { url: `sqlite:${join(folder, `${shard}.db`)}?sync=normal`, options }
  })
  return openMembers(members, '../../src/stores/sqlite/index.ts', () => rm(folder, { recursive: true, force: true }))
}

export async function openRedisShards(url: string, options: StoreOptions): Promise<Opened> {
  const prefixes = Array.from({ length: COUNT }, freshPrefix)
  const members = prefixes.map((prefix) => ({ url, options: { ...options, prefix } }))
  return openMembers(members, '../../src/stores/redis/index.ts', () =>
    Promise.all(prefixes.map((prefix) => removePrefix(url, prefix))),
  )
}

export async function openPostgresShards(url: string, options: StoreOptions): Promise<Opened> {
  const schemas = Array.from({ length: COUNT }, takeSchema)
  const members = schemas.map((schema) => ({ url, options: { client: pool(), ...options, schema } }))
  return openMembers(members, '../../src/stores/postgres/index.ts', () => Promise.all(schemas.map(giveBackSchema)))
}
