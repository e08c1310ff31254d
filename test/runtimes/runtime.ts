/** The other runtimes, from the packages of this folder, and how they run a test file of ours. */

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missingOf, variableOf } from '../servers/shared.ts'
import { casesOf } from './report.ts'
import { DIFFERENCES, filesFor, ON_SERVERS, type Reasons, type RuntimeName, UNSURE } from './suites.ts'
import { packageInProject, testPackage } from './user.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const PROGRAMS: Readonly<Record<RuntimeName, string>> = {
  deno: fileURLToPath(new URL('node_modules/.bin/deno', import.meta.url)),
  bun: fileURLToPath(new URL('node_modules/.bin/bun', import.meta.url)),
}

const COMMANDS: Readonly<Record<RuntimeName, (file: string, report: string) => string[]>> = {
  // Types are checked by `npm run check`.
  deno: (file, report) => [
    ...['test', '--allow-all', '--no-check', '--preload', 'test/runtimes/deno-setup.ts'],
    ...[`--junit-path=${report}`, file],
  ],
  // Bun gives a test five seconds unless told otherwise: too few for some on a slow machine.
  bun: (file, report) => [
    'test',
    `--timeout=${PATIENCE}`,
    '--reporter=junit',
    `--reporter-outfile=${report}`,
    `./${file}`,
  ],
}

/** A file that hangs is ended after so many milliseconds. */
const PATIENCE = 120_000

/** The runtime's version, or why it cannot be run here. */
function versionOf(runtime: RuntimeName): { version: string } | { missing: string } {
  const install = 'run npm ci --prefix test/runtimes'
  if (!existsSync(PROGRAMS[runtime])) return { missing: `${runtime} is not installed: ${install}` }
  try {
    const [version = ''] = execFileSync(PROGRAMS[runtime], ['--version'], { encoding: 'utf8' }).split('\n')
    return { version: version.replace(/^deno | \(.*/g, '') }
  } catch (error) {
    return { missing: `${runtime} does not start (${error instanceof Error ? error.message : error}): ${install}` }
  }
}

/**
 * Without what Node's test runner tells its own children, and with a sample of the vectors, as stores decide what they say. Servers: one of
 * each kind, as the client is the same for the other. Files about producers, workers and `serve` have memory and SQLite alone:
 * the clients of Redis and PostgreSQL are run by test/conformance.
 */
function environment(file = ''): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...rest } = process.env
  const without = ['redis-cluster', 'pgbouncer'] as const
  const alone = /^test\/(api|serve)\//.test(file) && !ON_SERVERS.includes(file)
  for (const name of alone ? ([...without, 'redis', 'postgres'] as const) : without) {
    delete rest[variableOf(name)]
    rest[missingOf(name)] = 'its tests run on Node, or on another file'
  }
  return { ...rest, NO_COLOR: '1', MILLPOND_TEST_VECTORS_EVERY: '16' }
}

/** The package on each runtime: what `npm test` runs. */
export function smoke(): void {
  describe('the published package', () => {
    const project = packageInProject()
    for (const runtime of ['deno', 'bun'] as const) {
      const found = versionOf(runtime)
      const skip = 'missing' in found ? found.missing : false
      describe(runtime, { skip }, () => testPackage(project, runtime, PROGRAMS[runtime], environment()))
    }
  })
}

/** The test files that run on that runtime, as tests of ours. */
export function onRuntime(runtime: RuntimeName): void {
  const found = versionOf(runtime)
  const title = 'version' in found ? `${runtime} ${found.version}` : runtime
  // Two files at a time, as they wait more than they compute.
  describe(title, { skip: 'missing' in found ? found.missing : false, concurrency: 2 }, () => {
    for (const [file, skip] of filesFor(runtime)) {
      test(file, { skip: skip ?? false }, async (t) => {
        const { report, output, code } = await run(runtime, file)
        const cases = casesOf(report)
        const isIn = (reasons: Reasons) => (name: string) =>
          Object.keys(reasons[file] ?? {}).some((ending) => name.endsWith(ending))
        const isFailing = isIn(DIFFERENCES[runtime].failing)
        const isUnsure = isIn(UNSURE)
        const names = (outcome: string) => cases.filter((each) => each.outcome === outcome).map(({ name }) => name)
        const unexpected = names('failed').filter((name) => !isFailing(name) && !isUnsure(name))
        assert.deepEqual(unexpected, [], output)
        assert.ok(names('passed').length > 0, `no test passed\n${output}`)
        assert.deepEqual(names('passed').filter(isFailing), [], 'they pass by now: take them off the list in suites.ts')
        // What goes wrong outside of the tests is in no report.
        assert.ok(code === 0 || names('failed').length > 0, output)
        t.diagnostic(
          `${names('passed').length} passed, ${names('skipped').length} skipped, ${names('failed').length} known to differ`,
        )
      })
    }
  })
}

interface Ran {
  /** Empty if there is none. */
  report: string
  /** The end of what was printed. */
  output: string
  code: number | string | null | undefined
}

async function run(runtime: RuntimeName, file: string): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'millpond-runtime-'))
  const path = join(folder, 'report.xml')
  try {
    const child = spawn(PROGRAMS[runtime], COMMANDS[runtime](file, path), {
      cwd: ROOT,
      env: environment(file),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: PATIENCE,
      killSignal: 'SIGKILL',
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output = (output + String(chunk)).slice(-20_000)
      })
    }
    const [code, signal]: (number | string | null)[] = await once(child, 'close')
    assert.equal(signal, null, `it did not end within ${PATIENCE} ms\n${output}`)
    return { report: existsSync(path) ? readFileSync(path, 'utf8') : '', output, code }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
