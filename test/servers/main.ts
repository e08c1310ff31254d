/**
 * `npm run servers`, `npm run servers redis postgres`: starts all of the shared servers or the named ones, prints a line
 * for a shell as soon as they answer, and stops them at Ctrl-C or SIGTERM. Whatever becomes of it, none stays behind.
 */

import { sharedServers, variableOf } from './shared.ts'
import { startShared } from './start-shared.ts'

const asked = process.argv.slice(2)
const known = sharedServers.filter((name) => asked.length === 0 || asked.includes(name))
const strange = asked.filter((word) => !known.some((name) => name === word))
if (strange.length > 0) {
  process.stderr.write(`${strange.join(', ')}: not one of ${sharedServers.join(', ')}\n`)
  process.exit(1)
}

// Asked to end before they are all up, it just goes: the guard stops what runs and removes the folders.
let leave: () => void = () => process.exit(1)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => leave())

// What the environment names is not started twice when tests run beside this, but whoever runs this wants them.
for (const name of known) delete process.env[variableOf(name)]
const { urls, missing, stop } = await startShared(known)
for (const [name, reason] of missing) process.stderr.write(`no ${name}: ${reason}\n`)
for (const [name, url] of urls) process.stdout.write(`export ${variableOf(name)}=${url}\n`)
if (urls.size === 0) process.exit(1)
process.stderr.write('Ctrl-C stops them\n')

const open = setInterval(() => {}, 2 ** 30)
leave = () => {
  leave = () => process.exit(1)
  clearInterval(open)
  void stop()
}
