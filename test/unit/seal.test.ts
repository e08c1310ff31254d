/** Sealed payloads: each vector both ways, and whatever was changed does not open. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode, MAX_PAYLOAD } from '../../src/values/encoding/encoding.ts'
import { Sealer, type SealPlace } from '../../src/values/encoding/seal.ts'
import type { Encoded, Encoding } from '../../src/values/jobs/records.ts'
import { vectors } from './vectors.ts'

interface Vectors {
  keys: { id: string; key: string }[]
  sealed: (SealPlace & {
    about: string
    salt: string
    encoding: Encoding
    body?: string
    base64?: string
    sealed: string
  })[]
  bad: (SealPlace & { about: string; sealed: string })[]
  errors: { about: string; queue: string; id: string; name: string; message: string; stack?: string; sealed: string }[]
  versions: { version: string; stored: string }[]
  looks: { base64: string; msgpack: string }
}
const pinned = vectors<Vectors>('seal')
const bytes = (base64: string) => new Uint8Array(Buffer.from(base64, 'base64'))
const reader = new Sealer({ keys: pinned.keys })

for (const { about, salt, encoding, body, base64, sealed, part, queue, id } of pinned.sealed) {
  test(`sealed: ${about}`, () => {
    const place = { part, queue, id }
    const plain = { encoding, body: body ?? bytes(base64 ?? '') }
    const writer = new Sealer({ keys: pinned.keys }, () => bytes(salt))
    const made = writer.seal(plain, place)
    assert.equal(Buffer.from(made.body).toString('base64'), sealed)
    const opened = reader.open({ encoding: 'bytes', body: bytes(sealed) }, place)
    assert.equal(opened.encoding, encoding)
    assert.deepEqual(Buffer.from(opened.body), Buffer.from(plain.body))
  })
}

for (const { about, sealed, part, queue, id } of pinned.bad) {
  test(`bad: ${about}`, () => {
    const stored = { encoding: 'bytes' as const, body: bytes(sealed) }
    assert.equal(reader.open(stored, { part, queue, id }), stored)
    assert.throws(() => decode(stored, 'data'), { code: 'PayloadSealed' })
  })
}

for (const { about, queue, id, name, message, stack, sealed } of pinned.errors) {
  test(`error: ${about}`, () => {
    const opened = reader.openError({ code: 'HandlerFailed', name: 'Sealed', message: sealed }, { queue, id })
    assert.deepEqual(opened, { code: 'HandlerFailed', name, message, ...(stack !== undefined && { stack }) })
    const elsewhere = { code: 'HandlerFailed', name: 'Sealed', message: sealed }
    assert.equal(reader.openError(elsewhere, { queue: 'other', id }), elsewhere)
  })
}

test('the version of a schedule is stored with the first key alone', () => {
  for (const { version, stored } of pinned.versions) {
    assert.equal(reader.version(version), stored)
    assert.notEqual(new Sealer({ keys: pinned.keys.toReversed() }).version(version), stored)
  }
})

test('no two payloads share a nonce, nor two processes a key', () => {
  const place = { part: 'data', queue: 'q', id: 'x' } as const
  const plain = { encoding: 'json', body: '1' } as const
  const writers = [new Sealer({ keys: pinned.keys }), new Sealer({ keys: pinned.keys })]
  const all = writers.flatMap((writer) => Array.from({ length: 1000 }, () => writer.seal(plain, place)))
  assert.equal(new Set(all.map(({ body }) => Buffer.from(body).toString('base64'))).size, 2000)
})

test('one changed bit anywhere, or a cut, and it does not open', () => {
  const place = { part: 'data', queue: 'q', id: 'x' } as const
  const { body } = new Sealer({ keys: pinned.keys }).seal({ encoding: 'json', body: '"x"' }, place)
  assert.ok(typeof body !== 'string')
  for (let at = 0; at < body.length; at++) {
    const changed: Uint8Array = Uint8Array.from(body)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(reader.open({ encoding: 'bytes', body: changed }, place).encoding, 'bytes', `byte ${at}`)
    const cut: Encoded = { encoding: 'bytes', body: body.slice(0, at) }
    assert.equal(reader.open(cut, place), cut)
  }
})

test('bytes that look sealed come back as they are', () => {
  const looks = bytes(pinned.looks.base64)
  const encoded = encode(looks, 'data', MAX_PAYLOAD)
  assert.deepEqual(encoded, { encoding: 'msgpack', body: bytes(pinned.looks.msgpack) })
  assert.deepEqual(decode(encoded, 'data'), looks)
})

test('WebCrypto opens it by the contract alone', async () => {
  const [first] = pinned.sealed
  const [key] = pinned.keys
  assert.ok(first !== undefined && key !== undefined)
  const sealed = bytes(first.sealed)
  const nonceAt = 9 + (sealed[8] ?? 0) + 16
  const root = await crypto.subtle.importKey('raw', bytes(key.key), 'HKDF', false, ['deriveKey'])
  const info = new TextEncoder().encode('millpond seal 1')
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: sealed.subarray(nonceAt - 16, nonceAt), info }
  const derived = await crypto.subtle.deriveKey(hkdf, root, { name: 'AES-GCM', length: 256 }, false, ['decrypt'])
  const place = new TextEncoder().encode(`${first.part}\n${first.queue}\n${first.id}`)
  const additionalData = Uint8Array.from([...sealed.subarray(0, nonceAt), ...place])
  const gcm = { name: 'AES-GCM', iv: sealed.subarray(nonceAt, nonceAt + 12), additionalData }
  const plain = new Uint8Array(await crypto.subtle.decrypt(gcm, derived, sealed.subarray(nonceAt + 12)))
  assert.equal(plain[0], 0)
  assert.equal(new TextDecoder().decode(plain.subarray(1)), first.body)
})
