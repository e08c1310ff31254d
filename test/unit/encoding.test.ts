import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decode, encode, MAX_PAYLOAD } from '../../src/values/encoding/encoding.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import type { Encoded, Encoding } from '../../src/values/jobs/records.ts'
import { revive, vectors } from './vectors.ts'

interface Laid {
  encoding: Encoding
  body?: string
  base64?: string
}
interface Vectors {
  encode: (Laid & { about: string; value: unknown })[]
  refuse: { about: string; value: unknown; error: string; path?: string }[]
  sizes: { about: string; value: unknown; limit: number; error?: string }[]
  decode: (Laid & { about: string; value: unknown })[]
  bad: (Laid & { about: string })[]
}
const pinned = vectors<Vectors>('encoding')

const laid = ({ encoding, body, base64 }: Laid): Encoded => ({
  encoding,
  body: body ?? new Uint8Array(Buffer.from(base64 ?? '', 'base64')),
})

/** Comparable whatever class of byte array it holds. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { bytes: [...value] }
  if (Array.isArray(value)) return Array.from(value, plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
}

/** Rejects everything but this code, and a message that names what was encoded. */
const coded = (code: string, what: string) => (thrown: unknown) => {
  assert.ok(isMillpondError(thrown), String(thrown))
  assert.equal(thrown.code, code)
  assert.match(thrown.message, new RegExp(`^${what} `))
  return true
}

describe('encoding', () => {
  for (const { about, value, ...expected } of pinned.encode) {
    test(`encode: ${about}`, () => {
      const made = encode(revive(value), 'data', MAX_PAYLOAD)
      const { encoding, body } = laid(expected)
      assert.equal(made.encoding, encoding)
      if (typeof body === 'string') assert.equal(made.body, body)
      else {
        assert.ok(made.body instanceof Uint8Array)
        assert.equal(Buffer.from(made.body).toString('hex'), Buffer.from(body).toString('hex'))
      }
    })

    test(`and decode it, encode it, and it is the same: ${about}`, () => {
      const again = encode(decode(laid(expected), 'data'), 'data', MAX_PAYLOAD)
      assert.deepEqual(plain(again), plain(laid(expected)))
    })
  }

  for (const { about, value, error, path } of pinned.refuse) {
    test(`refuse: ${about}`, () => {
      const revived = revive(value)
      assert.throws(
        () => encode(revived, 'result', MAX_PAYLOAD),
        (thrown) => {
          coded(error, 'result')(thrown)
          assert.ok(isMillpondError(thrown))
          assert.equal(thrown.issues?.[0]?.path, path)
          return true
        },
      )
    })
  }

  for (const { about, value, limit, error } of pinned.sizes) {
    test(`size: ${about} (limit ${limit})`, () => {
      const revived = revive(value)
      if (error === undefined) encode(revived, 'data', limit)
      else assert.throws(() => encode(revived, 'data', limit), coded(error, 'data'))
    })
  }

  for (const { about, value, ...given } of pinned.decode) {
    test(`decode: ${about}`, () => assert.deepEqual(plain(decode(laid(given), 'data')), plain(revive(value))))
  }

  for (const { about, ...given } of pinned.bad) {
    test(`bad: ${about}`, () => {
      assert.throws(() => decode(laid(given), 'progress'), coded('PayloadNotDecodable', 'progress'))
    })
  }

  test('what is encoded owes nothing to what it was made from', () => {
    const bytes = new Uint8Array([1, 2, 3])
    const alone = encode(bytes, 'data', 100)
    const nested = encode({ bytes }, 'data', 100)
    bytes.fill(9)
    assert.deepEqual(plain(decode(alone, 'data')), { bytes: [1, 2, 3] })
    assert.deepEqual(plain(decode(nested, 'data')), { bytes: { bytes: [1, 2, 3] } })
  })

  test('a window on a larger buffer is only what it shows', () => {
    const window = new Uint8Array([0, 1, 2, 3, 4]).subarray(1, 4)
    assert.deepEqual(plain(decode(encode({ window }, 'data', 100), 'data')), { window: { bytes: [1, 2, 3] } })
    assert.deepEqual(plain(decode(encode(window, 'data', 100), 'data')), { bytes: [1, 2, 3] })
  })

  test('a hostile proxy is refused as any other thing that cannot be encoded', () => {
    const hostile = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error('trap')
        },
      },
    )
    for (const value of [hostile, [hostile], { hostile, b: new Uint8Array(1) }]) {
      assert.throws(() => encode(value, 'data', 100), coded('PayloadNotEncodable', 'data'))
    }
  })
})
