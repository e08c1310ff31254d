/** Caches on the shared Redis servers, each test's under a prefix of its own. */
import { randomBytes } from 'node:crypto'
import { after, type TestContext } from 'node:test'
import type { Cluster, Redis } from 'ioredis'
import { Cache, type CacheOptions } from '../../src/cache/index.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { connect } from '../stores/redis-fixture.ts'

export const freshPrefix = (): string => `cache-${randomBytes(6).toString('hex')}`

export const SERVERS = ['redis', 'redis-cluster'] as const

export interface Place {
  name: string
  url: string
  skip: string | false
}

export const PLACES: readonly Place[] = [
  { name: 'memory', url: 'memory:', skip: false },
  ...SERVERS.map((name) => ({ name, url: serverUrl(name) ?? '', skip: missingReason(name) })),
]

export const onServers = PLACES.filter(({ name }) => name !== 'memory')

/** What went wrong where no caller could be told, by prefix. */
export const quiet = () => undefined

/** Closed after the test, and its keys removed. */
export async function openCache(t: TestContext, { url }: { url: string }, options: CacheOptions = {}): Promise<Cache> {
  const prefix = options.prefix ?? freshPrefix()
  const cache = await Cache.open(url, { onError: quiet, ...options, prefix })
  t.after(async () => {
    await cache.close()
    if (url !== 'memory:') await removeKeys(clientOf(url), prefix)
  })
  return cache
}

const clients = new Map<string, Redis | Cluster>()
after(() => {
  for (const client of clients.values()) client.disconnect()
})

/** For looks behind the cache's back. One for all tests of a file. */
export function clientOf(url: string): Redis | Cluster {
  let client = clients.get(url)
  if (client === undefined) {
    client = connect(url)
    clients.set(url, client)
  }
  return client
}

export async function keysOf(client: Redis | Cluster, prefix: string): Promise<string[]> {
  if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve))
  const nodes = 'nodes' in client ? client.nodes('master') : [client]
  const found: string[] = []
  for (const node of nodes) {
    let cursor = '0'
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', `${prefix}:*`, 'COUNT', 1000)
      found.push(...keys)
      cursor = next
    } while (cursor !== '0')
  }
  return found
}

async function removeKeys(client: Redis | Cluster, prefix: string): Promise<void> {
  await Promise.all((await keysOf(client, prefix)).map((key) => client.unlink(key)))
}

export interface Call<In, Out> extends PromiseWithResolvers<Out> {
  input: In
  signal: AbortSignal
}

/** A loader whose calls the test answers. */
export function gated<In, Out>() {
  const calls: Call<In, Out>[] = []
  const load = (input: In, { signal }: { signal: AbortSignal }): Promise<Out> => {
    const call = { input, signal, ...Promise.withResolvers<Out>() }
    calls.push(call)
    return call.promise
  }
  const call = (index: number): Call<In, Out> => {
    const found = calls[index]
    if (found === undefined) throw new Error(`call ${index} was not made`)
    return found
  }
  return { load, calls, call }
}
