import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DOCUMENT, openApiDocument } from './openapi-document.ts'

test('contract/openapi.json is what the service answers', async () => {
  assert.deepEqual(JSON.parse(readFileSync(DOCUMENT, 'utf8')), await openApiDocument(), 'run `npm run docs`')
})
