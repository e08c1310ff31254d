/** What lies in Redis: structures that many processes add to, readers of another age, bytes that are not ours, chunks. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Redis } from 'ioredis'
import { Codec } from '../../src/cache/redis/codec.ts'
import { RecordStructures, type StructureList } from '../../src/cache/redis/record-structures.ts'
import { headOf, parseStored, type StoredValue } from '../../src/cache/redis/stored-value.ts'
import type { MillpondError } from '../../src/values/errors/errors.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { clientOf, freshPrefix, gated, keysOf, onServers, openCache } from './fixture.ts'

/** A list as Redis keeps it, each answer a tick later. */
function list(): StructureList & { texts: string[]; appended: number } {
  const kept = {
    texts: [] as string[],
    appended: 0,
    async load(freshId: string) {
      await undefined
      if (kept.texts.length === 0) kept.texts.push(freshId)
      return [...kept.texts]
    },
    async append(id: string, length: number, structures: readonly string[]) {
      await undefined
      if (kept.texts[0] !== id || kept.texts.length - 1 !== length) return false
      kept.texts.push(...structures)
      kept.appended++
      return true
    },
  }
  return kept
}

const shape = (n: number, by: string) => ({ [`${by}${n}`]: n, also: { [`in${n}`]: by } })

describe('shared structures', () => {
  test('are added by many at once, and everyone reads everything', async () => {
    const shared = list()
    const all = Array.from({ length: 5 }, () => new RecordStructures(shared))
    const packed = await Promise.all(
      all.flatMap((one, by) =>
        Array.from({ length: 12 }, async (_, n) => ({
          value: shape(n, `p${by % 2}`),
          ...(await one.pack(shape(n, `p${by % 2}`))),
        })),
      ),
    )
    const late = new RecordStructures(shared)
    for (const reader of [...all, late]) {
      for (const { value, ...record } of packed) assert.deepEqual(await reader.unpack(record), value)
    }
    assert.equal(new Set(shared.texts).size, shared.texts.length, 'none is there twice')
  })

  test('a reader of an older state looks up what it lacks', async () => {
    const shared = list()
    const [old, young] = [new RecordStructures(shared), new RecordStructures(shared)]
    const first = await old.pack({ a: 1 })
    const second = await young.pack({ b: { c: 2 } })
    assert.ok(second.structures > first.structures)
    assert.deepEqual(await old.unpack(second), { b: { c: 2 } })
    assert.deepEqual(await young.unpack(first), { a: 1 })
  })

  test('what others added in the meantime is not mistaken for our own of the same number', async () => {
    const shared = list()
    const [one, two] = [new RecordStructures(shared), new RecordStructures(shared)]
    await one.pack({ a: 1 })
    await two.pack({ a: 1 })
    const [mine, theirs] = await Promise.all([one.pack({ mine: 1 }), two.pack({ theirs: 2 })])
    for (const reader of [one, two]) {
      assert.deepEqual(await reader.unpack(mine), { mine: 1 })
      assert.deepEqual(await reader.unpack(theirs), { theirs: 2 })
    }
  })

  test('a table that was lost is another table: its values cannot be read, and are not read wrongly', async () => {
    const shared = list()
    const one = new RecordStructures(shared)
    const packed = await one.pack({ a: 1 })
    shared.texts.length = 0
    const other = new RecordStructures(shared)
    await other.pack({ z: 1 })
    await assert.rejects(other.unpack(packed), /table/)
  })

  test('no more than a bounded number is shared; further values carry theirs', async () => {
    const shared = list()
    const one = new RecordStructures(shared)
    for (let n = 0; n < 600; n++) {
      const packed = await one.pack(shape(n, 'k'))
      assert.deepEqual(await one.unpack(packed), shape(n, 'k'))
    }
    assert.ok(shared.texts.length <= 513, String(shared.texts.length))
    const map = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}`, i]))
    const before = shared.texts.length
    assert.deepEqual(await one.unpack(await one.pack(map)), map)
    assert.equal(shared.texts.length, before)
  })
})

describe('bytes', () => {
  const codec = () => new Codec(new RecordStructures(list()), 1_000_000, () => undefined)
  const laid = async (value: unknown, tags: StoredValue['tags'] = []): Promise<[Codec, Buffer]> => {
    const own = codec()
    const encoded = await own.encode(value)
    const lives = { fresh: 1, stale: 2, error: 3 }
    const stored = { ...encoded, ...lives, version: '12345678', tags, chunks: 0, size: encoded.body.length }
    return [own, Buffer.concat([headOf(stored), stored.body])]
  }

  test('come back from their head', async () => {
    const tags = [{ name: 'ä', marker: '\xff\x00345678' }]
    for (const value of [1, 'text', { a: 1 }, Uint8Array.of(1), 'x'.repeat(5000)]) {
      const [own, bytes] = await laid(value, tags)
      const stored = parseStored(bytes)
      assert.deepEqual(
        [stored.version, stored.fresh, stored.stale, stored.error, stored.tags],
        ['12345678', 1, 2, 3, tags],
      )
      const back = await own.decode(stored)
      assert.deepEqual(value instanceof Uint8Array ? Uint8Array.from(back as Uint8Array) : back, value)
    }
  })

  test('that are not ours, cut short or changed throw nothing but a coded error, and take no memory', async () => {
    let undecodable = 0
    for (const value of [{ a: [1, { b: 2 }] }, Array.from({ length: 500 }, (_, i) => ({ i })), 'y'.repeat(3000)]) {
      const [own, good] = await laid(value, [{ name: 't', marker: 'abcdefgh' }])
      const hostile: Buffer[] = [Buffer.alloc(0), Buffer.from('{"json":1}'), randomBytes(200)]
      for (let at = 0; at < Math.min(good.length, 120); at++) {
        hostile.push(good.subarray(0, at))
        for (const change of [0, 0xff, 0x80, 0xc1, (good[at] ?? 0) ^ 1]) {
          const bytes = Buffer.from(good)
          bytes[at] = change
          hostile.push(bytes)
        }
      }
      for (const bytes of hostile) {
        let stored: StoredValue
        try {
          stored = parseStored(bytes)
        } catch (error) {
          assert.ok(error instanceof RangeError || error instanceof TypeError, String(error))
          undecodable++
          continue
        }
        await own.decode(stored).catch((error: MillpondError) => {
          assert.equal(error.code, 'PayloadNotDecodable')
          undecodable++
        })
      }
    }
    assert.ok(undecodable > 100)
  })

  test('a bomb is not unpacked', async () => {
    const [own, bytes] = await laid('z'.repeat(900_000))
    const stored = parseStored(bytes)
    assert.ok(stored.packed && stored.body.length < 20_000)
    await assert.rejects(own.decode({ ...stored, length: 10 }), coded('PayloadNotDecodable'))
    await assert.rejects(own.decode({ ...stored, length: 1e12 }), coded('PayloadNotDecodable'))
    await assert.rejects(
      own.decode({ ...stored, packed: false, body: Buffer.alloc(2000, 0x91), length: 2000 }),
      coded('PayloadNotDecodable'),
    )
  })

  test('a few bytes are not unpacked to many, however honest their head is', async () => {
    const own = new Codec(new RecordStructures(list()), 1024 ** 3, () => undefined)
    const whole = Buffer.alloc(10_000_000)
    const body = zstdCompressSync(whole)
    assert.ok(body.length < 1000)
    const lengths = { table: 0, structures: 0, length: whole.length }
    for (const kind of ['bytes', 'msgpack', 'records'] as const) {
      await assert.rejects(own.decode({ kind, ...lengths, packed: true, body }), coded('PayloadNotDecodable', /unpack/))
    }
  })

  test('what zstd makes that small is filled up, and read by whoever knows zstd', async () => {
    for (const length of [1025, 2000, 300_000, 5_000_000]) {
      const whole = Buffer.alloc(length, 'z')
      const own = new Codec(undefined, 10_000_000, () => undefined)
      const encoded = await own.encode(whole)
      assert.ok(encoded.packed && encoded.body.length * 64 >= length && encoded.body.length < length / 32)
      assert.ok(whole.equals(zstdDecompressSync(encoded.body)))
      const back = await own.decode(encoded)
      assert.ok(back instanceof Uint8Array && whole.equals(back))
    }
  })

  test('MessagePack that claims more than there is, or refers to itself again and again, is refused', async () => {
    const own = codec()
    // 20 levels, each twice the one within: 160 bytes that stand for a million lists.
    let doubled = Buffer.from('d6690000000090', 'hex')
    for (let level = 1; level <= 20; level++) {
      const [id, inner] = [level, level - 1].map((n) => n.toString(16).padStart(8, '0'))
      doubled = Buffer.concat([Buffer.from(`d669${id}92`, 'hex'), doubled, Buffer.from(`d670${inner}`, 'hex')])
    }
    const claims = ['ddffffffff', 'dfffffffff', 'dd01ffffff'.repeat(20), 'c6ffffffff', 'dbffffffff', 'c9ffffffff00']
    for (const body of [doubled, ...claims.map((hex) => Buffer.from(hex, 'hex'))]) {
      for (const kind of ['msgpack', 'records'] as const) {
        const { table, structures } = await own.encode({ any: 1 })
        const encoded = { kind, table, structures, packed: false, length: body.length, body }
        await assert.rejects(own.decode(encoded), coded('PayloadNotDecodable'), body.toString('hex'))
      }
    }
  })

  test('a value over the limit is refused', async () => {
    await assert.rejects(codec().encode(Buffer.alloc(1_000_001)), coded('PayloadTooLarge'))
  })
})

for (const place of onServers) {
  describe(`in Redis, ${place.name}`, { skip: place.skip }, () => {
    const client = () => clientOf(place.url)

    test('whatever lies at a key that is none of ours counts as nothing, is told, and is replaced', async (t) => {
      const prefix = freshPrefix()
      const told: MillpondError[] = []
      const cache = await openCache(t, place, { prefix, onError: (error) => told.push(error) })
      const reader = await openCache(t, place, { prefix })
      let made = 0
      const get = cache.wrap(() => ({ made: ++made }), { key: () => 'k', ttl: '1m' })
      const name = `${prefix}:v:{k}`
      await get()
      const bytes = (await client().getBuffer(name)) ?? Buffer.alloc(0)
      const spoil: (() => Promise<unknown>)[] = [
        () => client().set(name, 'rubbish', 'PX', 60_000),
        () => client().set(name, '', 'PX', 60_000),
        () => client().set(name, bytes.subarray(0, -1), 'PX', 60_000),
        () => client().set(name, Buffer.concat([bytes, bytes]), 'PX', 60_000),
        () => client().set(name, bytes), // it would never expire
        () => client().hset(name, 'a', '1'),
        () => client().lpush(name, 'a'),
        () =>
          client().set(`${prefix}:v:{k}`, Buffer.from(bytes.map((byte, at) => (at === 1 ? 99 : byte))), 'PX', 60_000),
      ]
      for (const [index, write] of spoil.entries()) {
        const before = made
        await client().unlink(name)
        await write()
        await cache.get('k').catch(() => undefined)
        const value = await get()
        assert.equal(value.made, before + 1, `case ${index}`)
        assert.deepEqual(await reader.get('k'), value, `case ${index}`)
      }
      assert.ok(told.length >= spoil.length - 1)
      assert.ok(told.every(({ code }) => code === 'PayloadNotDecodable'))
      assert.ok(cache.stats().corrupt >= spoil.length - 1)
    })

    test('without the table of structures values are made anew; with a spoilt one they are written without', async (t) => {
      const prefix = freshPrefix()
      const [one, two] = [await openCache(t, place, { prefix }), await openCache(t, place, { prefix })]
      const value = { a: { b: [1, 2] } }
      await one.set('k', value, { ttl: '1m' })
      await client().unlink(`${prefix}:s`)
      assert.equal(await two.get('k'), undefined)
      const get = two.wrap(() => value, { key: () => 'k', ttl: '1m' })
      assert.deepEqual(await get(), value)
      for (const spoil of ['set', 'rpush'] as const) {
        await client().unlink(`${prefix}:s`)
        if (spoil === 'set') await client().set(`${prefix}:s`, 'rubbish')
        else await client().rpush(`${prefix}:s`, '00000000', '{"no":"array"}')
        const [three, four] = [await openCache(t, place, { prefix }), await openCache(t, place, { prefix })]
        await three.set('other', value, { ttl: '1m' })
        assert.deepEqual(await four.get('other'), value)
      }
    })

    test('a large value goes in chunks, which go with it', async (t) => {
      const prefix = freshPrefix()
      const [one, two] = [await openCache(t, place, { prefix }), await openCache(t, place, { prefix })]
      const value = randomBytes(40_000_000)
      await one.set('k', value, { ttl: '1m' })
      const back = await two.get('k')
      assert.ok(back instanceof Uint8Array && Buffer.compare(back, value) === 0)
      const chunks = async () =>
        (await keysOf(client(), prefix)).filter((name) => name.startsWith(`${prefix}:c:`)).length
      assert.equal(await chunks(), 3)
      await one.set('k', { small: Buffer.concat([value.subarray(0, 20_000_000)]) }, { ttl: '1m' })
      assert.equal(await chunks(), 2)
      assert.deepEqual(Object.keys((await two.get('k')) as object), ['small'])
      await client().unlink((await keysOf(client(), prefix)).find((name) => name.endsWith(':1')) ?? '')
      const three = await openCache(t, place, { prefix })
      assert.equal(await three.get('k'), undefined)
      await one.invalidate('k')
      assert.equal(await chunks(), 0)
      // A load that has lost its lock leaves none behind.
      const { load, calls, call } = gated<string, Uint8Array>()
      const first = one.wrap(load, { key: (text) => text, ttl: '1m' })('k')
      await until(() => calls.length === 1)
      await client().unlink(`${prefix}:l:{k}`)
      call(0).resolve(value)
      await until(() => calls.length === 2)
      assert.equal(await chunks(), 0)
      call(1).resolve(Uint8Array.of(1))
      await first
    })

    test('everything but the table has a time to live', async (t) => {
      const prefix = freshPrefix()
      const cache = await openCache(t, place, { prefix })
      const get = cache.wrap(() => 1, { key: (id: number) => `k${id}`, ttl: '1m', tags: ['t'] })
      await Promise.all([get(1), get(2)])
      await cache.invalidateTag('t')
      for (const name of await keysOf(client(), prefix)) {
        if (!name.endsWith(':s')) assert.ok((await (client() as Redis).pttl(name)) > 0, name)
      }
    })
  })
}
