/** Installs a Debian package, where that needs nobody's password and nobody has forbidden it. */

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** As root, on a system with apt-get, unless MILLPOND_TEST_INSTALL=no. */
export function mayInstall(): boolean {
  const apt = (process.env.PATH ?? '').split(delimiter).some((place) => existsSync(join(place, 'apt-get')))
  return process.env.MILLPOND_TEST_INSTALL !== 'no' && process.getuid?.() === 0 && apt
}

/**
 * $1: the package. Services are not started by its installation (policy-rc.d is Debian's way to say so), as the tests
 * start their own; a policy that is there stays. What is installed already costs a second and changes nothing.
 */
const SCRIPT = `
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod +x "$policy"
fi
get() { apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300 "$1"; }
get "$1" || { apt-get update && get "$1"; }
`

const asked = new Map<string, Promise<string>>()

/** Installs the package, once in a process. @returns what went wrong, to be added to a message; '' if nothing did */
export function install(name: string, user = 'the tests'): Promise<string> {
  const result = asked.get(name) ?? installNow(name, user)
  asked.set(name, result)
  return result
}

async function installNow(name: string, user: string): Promise<string> {
  process.stderr.write(`installing the package ${name} for ${user} (MILLPOND_TEST_INSTALL=no forbids it)\n`)
  // flock: of several processes at once, one installs and the others wait; the system frees the lock of one that dies.
  const lock = join(tmpdir(), 'millpond-install.lock')
  try {
    await execute('flock', [lock, 'sh', '-c', SCRIPT, 'sh', name], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
      timeout: 600_000,
      maxBuffer: 16 << 20,
    })
    return ''
  } catch (error) {
    const words = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return ` Installing it here failed: ${words === '' ? error : words.slice(-500)}`
  }
}
