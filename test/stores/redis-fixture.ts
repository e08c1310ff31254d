/** Stores on the Redis servers that a test run shares: each under a prefix of its own, whose keys go when it is disposed of. */
import { randomBytes } from 'node:crypto'
import { Cluster, Redis } from 'ioredis'
import type { Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'

export const freshPrefix = (): string => `test-${randomBytes(6).toString('hex')}`

/** `redis://a:1,b:2` is a cluster. */
export function connect(url: string): Redis | Cluster {
  const nodes = url.replace(/^redis:\/\//, '').split(',')
  if (nodes.length === 1) return new Redis(url)
  return new Cluster(
    nodes.map((node) => {
      const [host = '', port] = node.split(':')
      return { host, port: Number(port) }
    }),
  )
}

const mastersOf = (client: Redis | Cluster): Redis[] => ('nodes' in client ? client.nodes('master') : [client])

/** Every key under the prefix. */
export async function keysOf(client: Redis | Cluster, prefix: string): Promise<string[]> {
  const found: string[] = []
  if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve))
  for (const node of mastersOf(client)) {
    let cursor = '0'
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', `{${prefix}}:*`, 'COUNT', 1000)
      found.push(...keys)
      cursor = next
    } while (cursor !== '0')
  }
  return found
}

const READS: Readonly<Record<string, readonly [command: string, ...string[]]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  set: ['SMEMBERS'],
  zset: ['ZRANGE', '0', '-1'],
  list: ['LRANGE', '0', '-1'],
}

/** All that the key holds, names and values in a row, without scores. */
export async function contentOf(client: Redis, key: string): Promise<Buffer> {
  const type = await client.type(key)
  const [command, ...rest] = READS[type] ?? []
  if (command === undefined) throw new Error(`${key} is a ${type}`)
  const answer: unknown = await client.callBuffer(command, key, ...rest)
  const parts: unknown[] = Array.isArray(answer) ? answer : [answer]
  return Buffer.concat(parts.filter((part) => Buffer.isBuffer(part)))
}

/** How many bytes these keys hold, without what Redis needs for itself. */
export async function bytesOf(client: Redis, keys: readonly string[]): Promise<number> {
  const contents = await Promise.all(keys.map((key) => contentOf(client, key)))
  return contents.reduce((sum, content) => sum + content.length, 0)
}

export async function removePrefix(url: string, prefix: string): Promise<void> {
  const client = connect(url)
  try {
    const keys = await keysOf(client, prefix)
    await Promise.all(keys.map((key) => client.unlink(key)))
  } finally {
    client.disconnect()
  }
}

export async function openRedis(
  url: string,
  options: StoreOptions = {},
): Promise<{ store: Store; prefix: string; dispose(): Promise<void> }> {
  const prefix = freshPrefix()
  const store = await open(`${url}?prefix=${prefix}`, options)
  return {
    store,
    prefix,
    async dispose() {
      await store.close()
      await removePrefix(url, prefix)
    },
  }
}

const POND =
  'jobs states results progress errors links waits settling queues due ends floor version workers claimed schedules scheduleNames nextFirings removedSchedules'.split(
    ' ',
  )

/** A key of a queue, or of the pond, as contract/redis/common.lua names them. */
export const keyOf = (prefix: string, queue: string, name: string): string =>
  POND.includes(name) ? `{${prefix}}:${name}` : `{${prefix}}:${queue}:${name}`
