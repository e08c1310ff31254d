/** What a browser loads. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { pageFiles } from '../../src/dashboard/page-files.ts'

test('the page has 60 KB at most, compressed, and asks no other host', async () => {
  const files = await pageFiles()
  assert.deepEqual([...files.keys()].sort(), ['icon.svg', 'index.html', 'page.css', 'page.js'])
  const sizes = [...files].map(([name, text]) => [name, gzipSync(text).length] as const)
  const all = sizes.reduce((sum, [, size]) => sum + size, 0)
  assert.ok(all <= 60_000, `${all} bytes: ${sizes.map(([name, size]) => `${name} ${size}`).join(', ')}`)
  for (const [name, text] of files) {
    const hosts = [...text.matchAll(/https?:\/\/[\w.]+/g)].map(([host]) => host)
    // Names of XML, which are asked for by nobody.
    assert.deepEqual(
      hosts.filter((host) => host !== 'http://www.w3.org'),
      [],
      name,
    )
    assert.doesNotMatch(text, /\beval\(|new Function|@import|sourceMappingURL/, name)
  }
})
