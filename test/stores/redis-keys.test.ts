/** Keys of Redis as another client finds them: `contract/vectors/wire/redis-keys.json`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { replay } from '../conformance/replay.ts'
import { EPOCH, type Vector } from '../conformance/vectors.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { vectors } from '../unit/vectors.ts'
import { openRedis } from './redis-fixture.ts'

type Kept = Record<string, string | number>
interface Case extends Vector {
  keys: Record<string, Kept>
}

const { cases } = vectors<{ cases: Case[] }>('wire/redis-keys')
const url = serverUrl('redis') ?? ''

/** A hash, or a sorted set. */
async function keptIn(client: Redis, key: string): Promise<Kept> {
  const isHash = (await client.type(key)) === 'hash'
  const parts = isHash
    ? ((await client.callBuffer('HGETALL', key)) as Buffer[])
    : await client.zrangeBuffer(key, '0', '-1', 'WITHSCORES')
  const pairs: [string, string | number][] = []
  for (const [at, name] of parts.entries()) {
    const value = parts[at + 1]
    if (at % 2 === 0 && value !== undefined)
      pairs.push([name.toString('hex'), isHash ? value.toString('hex') : Number(value)])
  }
  return Object.fromEntries(pairs)
}

/** Each digit that the vector leaves open is one. */
function withDots(actual: Kept, expected: Kept): Kept {
  const dotted = Object.entries(actual).map(([name, value]) => {
    const { [name]: wanted } = expected
    if (typeof value !== 'string' || typeof wanted !== 'string' || value.length !== wanted.length) return [name, value]
    return [name, [...value].map((digit, at) => (wanted[at] === '.' ? '.' : digit)).join('')]
  })
  return Object.fromEntries(dotted)
}

for (const vector of cases) {
  test(`keys of redis: ${vector.about}`, { skip: missingReason('redis') }, async () => {
    const clock = { now: EPOCH }
    const { store, prefix, dispose } = await openRedis(url, { clock: () => clock.now })
    const client = new Redis(url)
    try {
      await replay(vector, store, clock)
      for (const [key, expected] of Object.entries(vector.keys)) {
        assert.deepEqual(withDots(await keptIn(client, `{${prefix}}:${key}`), expected), expected, key)
      }
    } finally {
      client.disconnect()
      await dispose()
    }
  })
}
