/** How values of the cache lie in Redis, which other languages must read and write alike: contract/cache/README.md. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Cache } from '../../src/cache/index.ts'
import { Entry } from '../../src/cache/memory/entry.ts'
import { Codec } from '../../src/cache/redis/codec.ts'
import { CacheKeys } from '../../src/cache/redis/keys.ts'
import { RecordStructures } from '../../src/cache/redis/record-structures.ts'
import { type Encoded, headOf, lifeOf, parseStored, type StoredValue } from '../../src/cache/redis/stored-value.ts'
import { coded } from './suite.ts'
import { revive, vectors } from './vectors.ts'

type Head = Omit<StoredValue, 'body'>
type Body = Pick<Encoded, 'kind' | 'packed' | 'length' | 'structures'> & { about: string; body: string }

interface CacheVectors {
  keys: { about: string; prefix: string; key: string; value: string; lock: string; chunk: string }[]
  heads: { about: string; head: Head; hex: string }[]
  list: string[]
  values: (Body & { value: unknown })[]
  refuse: { about: string; hex: string }[]
  refuseBodies: Body[]
  refuseValues: { about: string; json: string }[]
  ages: { about: string; fresh: number; stale: number; error: number; left: number; age: number; is: string }[]
}
const cases = vectors<CacheVectors>('cache')
const fromHex = (hex: string) => Buffer.from(hex, 'hex')
const latin1 = (hex: string) => fromHex(hex).toString('latin1')

for (const { about, prefix, key, value, lock, chunk } of cases.keys) {
  test(`the keys of a cache key: ${about}`, () => {
    const keys = new CacheKeys(prefix)
    assert.deepEqual([keys.value(key), keys.lock(key), `${keys.chunks(key)}0102030405060708:0`], [value, lock, chunk])
    assert.deepEqual(keys.parse(value), { key })
  })
}

for (const { about, head, hex } of cases.heads) {
  test(`the head of a value: ${about}`, () => {
    const tags = head.tags.map(({ name, marker }) => ({ name, marker: latin1(marker) }))
    const stored = { ...head, tags, version: latin1(head.version) }
    assert.equal(headOf({ ...stored, body: Buffer.alloc(0) }).toString('hex'), hex)
    const body = Buffer.alloc(head.chunks > 0 ? 0 : head.size)
    assert.deepEqual(parseStored(Buffer.concat([fromHex(hex), body])), { ...stored, body })
  })
}

for (const { about, hex } of cases.refuse) {
  test(`no value: ${about}`, () => {
    assert.throws(
      () => parseStored(fromHex(hex)),
      (error) => error instanceof RangeError || error instanceof TypeError,
    )
  })
}

const codecOf = (list: readonly string[]): Codec => {
  const known = [...list]
  const append = async (_id: string, length: number, added: readonly string[]) => {
    if (length !== known.length - 1) return false
    known.push(...added)
    return true
  }
  return new Codec(new RecordStructures({ load: async () => known, append }), 1e8)
}
const encodedOf = ({ kind, packed, length, structures, body }: Body): Encoded => {
  const table = kind === 'records' ? Number.parseInt(cases.list[0] ?? '', 16) : 0
  return { kind, packed, length, structures, table, body: fromHex(body) }
}

describe('the body of a value', () => {
  for (const vector of cases.values) {
    test(`is read: ${vector.about}`, async () => {
      const value = revive(vector.value)
      const read = await codecOf(cases.list).decode(encodedOf(vector))
      // Strictly: bytes are Uint8Arrays, also within a value, and no Buffers.
      assert.deepEqual(read, value)
    })
  }

  for (const vector of cases.values.filter(({ kind }) => kind === 'records')) {
    test(`is written: ${vector.about}`, async () => {
      const expected = encodedOf(vector)
      // With no more structures in the list than were known when it was written.
      const encoded = await codecOf(cases.list.slice(0, 1 + vector.structures)).encode(revive(vector.value))
      assert.deepEqual(encoded, expected)
    })
  }

  for (const vector of cases.refuseBodies) {
    test(`is refused: ${vector.about}`, async () => {
      await assert.rejects(codecOf(cases.list).decode(encodedOf(vector)), coded('PayloadNotDecodable'))
    })
  }
})

for (const { about, json } of cases.refuseValues) {
  test(`is not written, and not kept in memory either: ${about}`, async (t) => {
    const cache = await Cache.open('memory:')
    t.after(() => cache.close())
    await assert.rejects(cache.set('k', JSON.parse(json), { ttl: '1m' }), coded('PayloadNotEncodable'))
  })
}

for (const { about, fresh, stale, error, left, age, is } of cases.ages) {
  test(`the age of a value: ${about}`, () => {
    const lives = { fresh, stale, error }
    assert.equal(lifeOf(lives) - left, age)
    const facts = { key: 'k', version: '12345678', encoded: undefined, uses: [], seenAt: 0, epoch: 0, suspect: false }
    assert.equal(new Entry({ ...facts, ...lives, age }).age(0), is)
  })
}
