/** Answers as ready bytes. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Packr } from 'msgpackr'
import { coded } from '../unit/suite.ts'
import { openCache, PLACES } from './fixture.ts'

const value = { id: 1, list: [{ a: 1 }, { a: 2 }], text: 'ä' }
const request = (headers: Record<string, string> = {}, method = 'GET') => new Request('http://x/', { headers, method })

for (const place of PLACES) {
  describe(`ready answers, ${place.name}`, { skip: place.skip }, () => {
    test('JSON or MessagePack by Accept, 304 by If-None-Match, no body for HEAD', async (t) => {
      const cache = await openCache(t, place)
      const get = cache.wrap(() => value, { key: () => 'k', ttl: '1m' })
      const json = await get.response(request(), undefined)
      assert.equal(json.status, 200)
      assert.equal(json.headers.get('content-type'), 'application/json; charset=utf-8')
      assert.equal(json.headers.get('vary'), 'accept')
      const text = await json.text()
      assert.equal(json.headers.get('content-length'), String(Buffer.byteLength(text)))
      assert.deepEqual(JSON.parse(text), value)

      const msgpack = await get.response(request({ accept: 'application/msgpack' }), undefined)
      assert.equal(msgpack.headers.get('content-type'), 'application/vnd.msgpack')
      // Plain: no structures that the client would have to know.
      assert.deepEqual(new Packr({ useRecords: false }).unpack(Buffer.from(await msgpack.arrayBuffer())), value)

      const etag = json.headers.get('etag') ?? ''
      assert.notEqual(etag, msgpack.headers.get('etag'))
      for (const given of [etag, `"x", W/${etag}`, '*']) {
        const same = await get.response(request({ 'if-none-match': given }), undefined)
        assert.deepEqual([same.status, same.headers.get('etag'), await same.text()], [304, etag, ''])
      }
      assert.equal((await get.response(request({ 'if-none-match': '"x"' }), undefined)).status, 200)
      const head = await get.response(request({}, 'HEAD'), undefined)
      assert.deepEqual(
        [head.status, head.headers.get('content-length'), await head.text()],
        [200, String(Buffer.byteLength(text)), ''],
      )
    })

    test('are the very same bytes for every hit, also of another process', async (t) => {
      const prefix = `cache-ready-${place.name}`
      const cache = await openCache(t, place, { prefix })
      const get = cache.wrap(() => value, { key: () => 'k', ttl: '1m' })
      const first = await get.rendered({}, undefined)
      assert.equal((await get.rendered({ accept: '*/*' }, undefined)).body, first.body)
      const unchanged = await get.rendered({ 'if-none-match': first.headers.etag }, undefined)
      assert.deepEqual([unchanged.status, unchanged.body], [304, null])
      if (place.name === 'memory') return
      const other = await openCache(t, place, { prefix })
      const theirs = other.wrap<void, typeof value>(() => assert.fail('it is there'), { key: () => 'k', ttl: '1m' })
      assert.deepEqual(await theirs.rendered({}, undefined), first)
      assert.deepEqual(await theirs(), value)
    })

    test('bytes are sent as they are; nothing is 404; what JSON cannot carry is refused in JSON alone', async (t) => {
      const cache = await openCache(t, place)
      const values: Record<string, unknown> = { bytes: Uint8Array.of(1, 2, 3), nothing: null, big: { n: 1n } }
      const get = cache.wrap((name: string) => values[name], { key: (name) => name, ttl: '1m', negative: '1m' })
      const bytes = await get.response(request(), 'bytes')
      assert.equal(bytes.headers.get('content-type'), 'application/octet-stream')
      assert.deepEqual([...new Uint8Array(await bytes.arrayBuffer())], [1, 2, 3])
      assert.equal((await get.response(request(), 'nothing')).status, 404)
      await assert.rejects(get.response(request(), 'big'), coded('PayloadNotEncodable'))
      assert.equal((await get.response(request({ accept: 'application/msgpack' }), 'big')).status, 200)
      assert.deepEqual(await get('big'), { n: 1n })
    })
  })
}

test('examples/cache.ts', { timeout: 60_000 }, async () => {
  const file = fileURLToPath(new URL('../../examples/cache.ts', import.meta.url))
  assert.ok(readFileSync(file, 'utf8').trimEnd().split('\n').length <= 40)
  const preload = new URL('../web/adapters-source.ts', import.meta.url).href
  const env = { ...process.env, PORT: '0', CACHE: 'memory:' }
  const child = spawn(process.execPath, ['--import', preload, file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let origin = ''
    for await (const line of createInterface(child.stdout)) {
      origin = /http:\/\/\S+/.exec(line)?.[0] ?? ''
      if (origin !== '') break
    }
    const product = await fetch(`${origin}/products/42`)
    const etag = product.headers.get('etag') ?? ''
    assert.deepEqual([product.status, await product.json()], [200, { id: 42, name: 'product 42', sold: 1 }])
    assert.equal((await fetch(`${origin}/products/42`, { headers: { 'if-none-match': etag } })).status, 304)
    assert.equal((await fetch(`${origin}/products/42`, { method: 'PUT' })).status, 204)
    assert.deepEqual(await (await fetch(`${origin}/products/42`)).json(), { id: 42, name: 'product 42', sold: 2 })
    assert.equal((await fetch(`${origin}/products/none`)).status, 404)
  } finally {
    const exited = once(child, 'exit')
    child.kill()
    await exited
  }
})
