/** The types and the tests of `python/`, as `npm run test:python` runs them: for two minutes, beside those of Node. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))
/** Of what it wrote: a failure is told at its end. */
const SHOWN = 20_000

test('types and tests of python/', { timeout: 900_000 }, async (t) => {
  const child = spawn(process.execPath, [MAIN], { stdio: ['ignore', 'pipe', 'pipe'], signal: t.signal })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'close')
  assert.equal(code, 0, output.slice(-SHOWN))
  t.diagnostic(output.trim().split('\n').at(-1) ?? '')
})
