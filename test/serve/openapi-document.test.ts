import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { asText, DOCUMENT, openApiDocument } from './openapi-document.ts'

test('contract/openapi.json is what the service answers', async () => {
  const [kept, answered] = [readFileSync(DOCUMENT, 'utf8'), await openApiDocument()]
  assert.deepEqual(JSON.parse(kept), answered, 'run `npm run docs`')
  assert.equal(kept, asText(answered), 'it was formatted by something else than `npm run docs`')
})
