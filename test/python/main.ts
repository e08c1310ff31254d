/** `npm run test:python`: the types and the tests of `python/`, on throw-away servers. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { missingOf, type SharedServer, variableOf } from '../servers/shared.ts'
import { startShared } from '../servers/start-shared.ts'
import { PYTHON_FOLDER, pythonEnvironment } from './environment.ts'

const SERVERS: readonly SharedServer[] = ['redis', 'postgres']

const python = await pythonEnvironment()
const servers = await startShared(SERVERS)
try {
  const environment = { ...process.env, ...python.variables }
  for (const [name, url] of servers.urls) environment[variableOf(name)] = url
  for (const [name, reason] of servers.missing) {
    environment[missingOf(name)] = reason
    process.stderr.write(`no ${name} for the Python tests, which skip what needs it: ${reason}\n`)
  }
  for (const module of ['mypy', 'pytest']) {
    const child = spawn(python.program, ['-m', module], { cwd: PYTHON_FOLDER, env: environment, stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    if (code !== 0) process.exitCode = 1
  }
} finally {
  await servers.stop()
}
