/** `npm run test:python`: the types and the tests of `python/`, on throw-away servers. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type SharedServer, variableOf } from '../servers/shared.ts'
import { startShared } from '../servers/start-shared.ts'
import { PYTHON_FOLDER, pythonEnvironment } from './environment.ts'

const SERVERS: readonly SharedServer[] = ['redis', 'postgres']

const python = await pythonEnvironment()
const servers = await startShared(SERVERS)
try {
  for (const [name, reason] of servers.missing) throw new Error(`no ${name} for the Python tests: ${reason}`)
  const urls = Object.fromEntries([...servers.urls].map(([name, url]) => [variableOf(name), url]))
  const environment = { ...process.env, ...urls, ...python.variables }
  for (const module of ['mypy', 'pytest']) {
    const child = spawn(python.program, ['-m', module], { cwd: PYTHON_FOLDER, env: environment, stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    if (code !== 0) process.exitCode = 1
  }
} finally {
  await servers.stop()
}
