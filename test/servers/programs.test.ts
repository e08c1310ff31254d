/** Finding the servers' programs, and installing them; with programs and a package manager of the test's own. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { scratch } from '../support/cleaning.ts'
import { extraPlaces } from './programs.ts'

const execute = promisify(execFile)

const outside = extraPlaces.some((place) =>
  ['redis-server', 'valkey-server'].some((name) => existsSync(join(place, name))),
)
const skip = outside && 'there is a Redis outside of the PATH, which these tests cannot hide'

function program(path: string, ...lines: string[]): void {
  writeFileSync(path, `#!/bin/sh\n${lines.join('\n')}\n`)
  chmodSync(path, 0o755)
}

/** Where a process that has this folder as its PATH finds Redis, or its error. */
async function find(folder: string, environment: Record<string, string> = {}): Promise<string> {
  const code = `import { redisPrograms } from ${JSON.stringify(new URL('programs.ts', import.meta.url).href)}
    console.log(await redisPrograms().then(({ server }) => server, (error) => error.name + ': ' + error.message))`
  const { stdout } = await execute(process.execPath, ['--no-warnings', '--input-type=module', '-e', code], {
    env: { PATH: folder, TMPDIR: folder, ...environment },
  })
  return stdout.trim()
}

test('what is missing is said, and how to get it', { skip }, async (t) => {
  const said = await find(scratch(t))
  assert.match(said, /^ServerMissing: Redis 6\.2 or later \(redis-server and redis-cli, or .*\) is neither in the PATH/)
  assert.match(said, /apt-get install redis-server .* brew install redis\.$/)
})

test('programs that are too old are missing; Valkey will do', { skip }, async (t) => {
  const folder = scratch(t)
  program(join(folder, 'redis-server'), 'echo Redis server v=6.0.16 sha=0')
  program(join(folder, 'redis-cli'))
  assert.match(await find(folder, { MILLPOND_TEST_INSTALL: 'no' }), /^ServerMissing/)
  program(join(folder, 'valkey-server'), 'echo Valkey server v=8.0.1 sha=0')
  program(join(folder, 'valkey-cli'))
  assert.equal(await find(folder), join(folder, 'valkey-server'))
  program(join(folder, 'redis-server'), 'echo Redis server v=6.2.14 sha=0')
  assert.equal(await find(folder), join(folder, 'redis-server'))
})

const cannot =
  process.getuid?.() !== 0 ? 'only root installs packages' : !existsSync('/usr/bin/flock') && 'no flock here'

/** A package manager that installs a Redis into the folder, after `apt-get update` alone, and writes down what it does. */
function packages(folder: string): () => string[] {
  for (const name of ['sh', 'flock', 'rm', 'chmod', 'mkdir', 'rmdir', 'sleep']) {
    const path = [`/bin/${name}`, `/usr/bin/${name}`].find((each) => existsSync(each))
    if (path !== undefined) symlinkSync(path, join(folder, name))
  }
  program(
    join(folder, 'apt-get'),
    `cd ${folder}`,
    'mkdir at-work || { echo two at once >> done; exit 1; }',
    'trap "rmdir at-work" EXIT',
    'echo "$1" >> done',
    'sleep 0.1',
    'if [ "$1" = update ]; then touch updated 2>/dev/null || : > updated; exit 0; fi',
    'test -e updated || exit 100',
    'case "$*" in *redis-server) ;; *) exit 100 ;; esac',
    `printf '#!/bin/sh\\necho Redis server v=7.0.15 sha=0\\n' > redis-server`,
    `printf '#!/bin/sh\\n' > redis-cli`,
    'chmod +x redis-cli redis-server',
  )
  return () => readFileSync(join(folder, 'done'), 'utf8').trim().split('\n')
}

test('as root what is missing is installed, one process at a time', { skip: skip || cannot }, async (t) => {
  const folder = scratch(t)
  const done = packages(folder)
  const policy = existsSync('/usr/sbin/policy-rc.d')
  assert.match(await find(folder, { MILLPOND_TEST_INSTALL: 'no' }), /^ServerMissing/)
  assert.ok(!existsSync(join(folder, 'done')))
  const found = await Promise.all([1, 2, 3].map(() => find(folder)))
  assert.deepEqual(found, Array(3).fill(join(folder, 'redis-server')))
  assert.deepEqual(done().slice(0, 3), ['install', 'update', 'install'])
  assert.ok(!done().includes('two at once'))
  assert.equal(existsSync('/usr/sbin/policy-rc.d'), policy, 'the policy is as it was')
})

test('that an installation failed is said', { skip: skip || cannot }, async (t) => {
  const folder = scratch(t)
  packages(folder)
  program(join(folder, 'apt-get'), 'echo E: Unable to locate package >&2; exit 100')
  assert.match(await find(folder), /^ServerMissing: .*Installing it here failed: .*E: Unable to locate package/s)
})
