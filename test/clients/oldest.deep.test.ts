/** The stores on the oldest clients that `peerDependencies` takes; everything else runs on the newest. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missingReason } from '../servers/shared.ts'

const ROOT = new URL('../../', import.meta.url)
const HOOK = new URL('oldest.ts', import.meta.url).href
const manifest = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'))

test('the oldest ones that are tested are the oldest ones of the ranges', () => {
  for (const name of ['ioredis', 'pg']) {
    const least = /^\^(\d+\.\d+\.\d+)/.exec(manifest.peerDependencies[name])?.[1]
    const { version } = JSON.parse(readFileSync(new URL(`node_modules/${name}-oldest/package.json`, ROOT), 'utf8'))
    assert.equal(version, least)
  }
})

/** By file, which of its tests; those of other stores have no client. */
const FILES: Readonly<Record<string, string>> = {
  'test/conformance/vectors.test.ts': '/lifecycle vectors: (redis|redis-cluster|postgres) /',
  'test/conformance/bells.test.ts': '/: (redis|redis-cluster|postgres|pgbouncer) /',
  'test/stores/redis-outages.test.ts': '/./',
  'test/stores/redis-clients.test.ts': '/./',
  'test/stores/tls.test.ts': '/rediss/',
  'test/faults/postgres-silence.test.ts': '/./',
  'test/stores/postgres-transactions.test.ts': '/./',
}

describe('the oldest clients', { skip: missingReason('redis') || missingReason('postgres') }, () => {
  for (const [file, pattern] of Object.entries(FILES)) {
    test(file, async () => {
      const { NODE_TEST_CONTEXT: _, ...rest } = process.env
      // Processes that a test starts have the same clients. A sample of the vectors: clients have a part in how calls travel alone.
      const env = { ...rest, NODE_OPTIONS: `--import ${HOOK}`, MILLPOND_TEST_VECTORS_EVERY: '4' }
      // A test that hangs is named before this one has lasted too long.
      const bounds = ['--test-force-exit', '--test-timeout=60000']
      const options = ['--test', ...bounds, `--test-name-pattern=${pattern}`, '--test-reporter=tap', file]
      const child = spawn(process.execPath, options, {
        cwd: fileURLToPath(ROOT),
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let output = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
      const [code] = await once(child, 'close')
      assert.equal(code, 0, output)
      assert.ok(Number(/^# pass (\d+)$/m.exec(output)?.[1]) > 0, output)
    })
  }
})
