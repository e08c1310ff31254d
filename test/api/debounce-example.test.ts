/** `examples/debounce.ts` as it is. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const EXAMPLE = fileURLToPath(new URL('../../examples/debounce.ts', import.meta.url))
const PRELOAD = new URL('../web/adapters-source.ts', import.meta.url).href

test('examples/debounce.ts indexes five edits once, and the one that comes meanwhile after it', async () => {
  const env = { ...process.env, STORE: 'memory:' }
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', PRELOAD, EXAMPLE], { env })
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    ...[2, 3, 4, 5].map((version) => `version ${version}: replaces the one before`),
    'document 1: version 5 is indexed',
    'document 1: version 6 is indexed',
  ])
})
