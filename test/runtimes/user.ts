/** The package as it is published, compiled and used in plain JavaScript, on each store. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { layPackage } from '../house/published.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { removePrefix } from '../stores/redis-fixture.ts'
import type { RuntimeName } from './suites.ts'

const execute = promisify(execFile)
const RUN: Readonly<Record<RuntimeName, string[]>> = { deno: ['run', '--allow-all'], bun: ['run'] }

async function install(project: string): Promise<void> {
  await layPackage(project, ['ioredis', 'pg'])
  copyFileSync(fileURLToPath(new URL('user.js', import.meta.url)), join(project, 'user.js'))
}

/** The folder of a project that has the package, for the suite that asks for it. */
export function packageInProject(): string {
  const project = mkdtempSync(join(tmpdir(), 'millpond-user-'))
  before(() => install(project))
  after(() => rmSync(project, { recursive: true, force: true }))
  return project
}

export function testPackage(project: string, runtime: RuntimeName, program: string, env: NodeJS.ProcessEnv): void {
  const prefix = `${basename(project)}-${runtime}`
  const schema = newSchema()
  after(async () => {
    if (missingReason('postgres') === false) await dropSchema(schema)
    if (missingReason('redis') === false) await removePrefix(serverUrl('redis') ?? '', prefix)
  })
  const urls = {
    memory: 'memory:',
    sqlite: `sqlite:${join(project, `${runtime}.db`)}`,
    redis: `${serverUrl('redis')}?prefix=${prefix}`,
    postgres: `${serverUrl('postgres')}?schema=${schema}`,
  }
  for (const [store, url] of Object.entries(urls)) {
    const skip = store === 'redis' || store === 'postgres' ? missingReason(store) : false
    test(`answers over HTTP, follows and ends by itself: ${store}`, { skip }, async () => {
      const options = { cwd: project, env, timeout: 60_000, killSignal: 'SIGKILL' } as const
      const { stdout } = await execute(program, [...RUN[runtime], 'user.js', url], options)
      assert.match(stdout, /^200 .*"ada@example\.org, attempt 2"/m)
      assert.match(stdout, /^200 (event|id|:).*"bob@example\.org, attempt 2"/ms)
    })
  }
}
