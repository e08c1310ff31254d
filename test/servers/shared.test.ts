/** A test run's global setup: its servers reach the test processes, or the reason why there is none does. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { scratch } from '../support/cleaning.ts'
import { extraPlaces, redisPrograms } from './programs.ts'
import { ServerMissing } from './server.ts'

const execute = promisify(execFile)
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

type Seen = Record<string, { url?: string; missing: string | false }>

/** Runs a test file with or without the global setup, in an environment that has these variables alone. */
async function run(t: TestContext, setup: boolean, environment: Record<string, string>) {
  const folder = scratch(t)
  const file = join(folder, 'seen.json')
  const flags = setup ? [`--test-global-setup=${here('global.ts')}`] : []
  const { stderr } = await execute(process.execPath, ['--no-warnings', '--test', ...flags, here('roles/reader.ts')], {
    env: { PATH: folder, TMPDIR: folder, MILLPOND_TEST_INSTALL: 'no', MILLPOND_SEEN: file, ...environment },
  })
  const seen: Seen = JSON.parse(readFileSync(file, 'utf8'))
  return { seen, stderr, folder }
}

test('what the environment names is taken as it is', async (t) => {
  const { seen, stderr } = await run(t, true, {
    MILLPOND_TEST_REDIS: 'redis://a',
    MILLPOND_TEST_REDIS_CLUSTER: 'redis://a,b',
    MILLPOND_TEST_POSTGRES: 'postgres://c',
    MILLPOND_TEST_PGBOUNCER: 'postgres://d',
    MILLPOND_TEST_RABBITMQ: 'amqp://e',
  })
  assert.deepEqual(seen, {
    redis: { url: 'redis://a', missing: false },
    'redis-cluster': { url: 'redis://a,b', missing: false },
    postgres: { url: 'postgres://c', missing: false },
    pgbouncer: { url: 'postgres://d', missing: false },
    rabbitmq: { url: 'amqp://e', missing: false },
  })
  assert.equal(stderr, '')
})

test('without the global setup a test says what to run', async (t) => {
  const { seen } = await run(t, false, {})
  for (const { url, missing } of Object.values(seen)) {
    assert.equal(url, undefined)
    assert.match(String(missing), /^MILLPOND_TEST_[A-Z_]+ is not set: run npm test, or npm run servers$/)
  }
  assert.equal(Object.keys(seen).length, 5)
})

const hidden = !extraPlaces.some((place) => existsSync(join(place, 'redis-server')))

test('with it the servers are there while the tests run, or the reason why not', async (t) => {
  const programs = await redisPrograms().catch((error: unknown) => {
    if (error instanceof ServerMissing) return undefined
    throw error
  })
  if (programs === undefined || !hidden) return t.skip('no Redis in the PATH')
  const places = scratch(t)
  symlinkSync(programs.server, join(places, 'redis-server'))
  symlinkSync(programs.cli, join(places, 'redis-cli'))
  const { seen, folder } = await run(t, true, { PATH: places, MILLPOND_TEST_REDIS_CLUSTER: 'redis://a,b' })
  assert.match(seen.redis?.url ?? '', /^redis:\/\/127\.0\.0\.1:\d+$/)
  assert.deepEqual(readdirSync(folder), ['seen.json'])

  const without = await run(t, true, {
    MILLPOND_TEST_POSTGRES: 'postgres://c',
    MILLPOND_TEST_PGBOUNCER: 'postgres://d',
    MILLPOND_TEST_RABBITMQ: 'amqp://e',
  })
  assert.match(String(without.seen.redis?.missing), /^Redis 6\.2 or later .* brew install redis\.$/)
  assert.equal(without.stderr.match(/^no redis for the tests, which skip what needs it: /gm)?.length, 1)
})
