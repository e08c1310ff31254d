/** `node --test --test-global-setup=test/servers/global.ts`: the shared servers, for as long as the test run takes. */

import { fileURLToPath } from 'node:url'
import { makeTableOfSchemas } from './schemas.ts'
import { missingOf, sharedServers, variableOf } from './shared.ts'
import { type SharedStart, startShared } from './start-shared.ts'

let shared: SharedStart | undefined

export async function globalSetup(): Promise<void> {
  // A run starts over a thousand processes and threads. Each would strip the types of the same files, and compile them.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../node_modules/.cache/millpond', import.meta.url))
  shared = await startShared(sharedServers)
  // The test processes are started after this, and inherit it.
  for (const [name, url] of shared.urls) process.env[variableOf(name)] = url
  const postgres = shared.urls.get('postgres')
  if (postgres !== undefined) await makeTableOfSchemas(postgres)
  for (const [name, reason] of shared.missing) {
    process.env[missingOf(name)] = reason
    process.stderr.write(`no ${name} for the tests, which skip what needs it: ${reason}\n`)
  }
}

export async function globalTeardown(): Promise<void> {
  await shared?.stop()
}
