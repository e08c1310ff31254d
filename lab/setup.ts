/** What the lab needs beside the library: its npm packages and some of Debian's. It installs what it may, and says so. */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install, mayInstall } from '../test/servers/install.ts'

const folder = fileURLToPath(new URL('./', import.meta.url))

interface Program {
  /** Any of these will do. */
  names: readonly string[]
  debian: string
  needs: string
}

const PROGRAMS: readonly Program[] = [
  { names: ['redis-server', 'valkey-server'], debian: 'redis-server', needs: 'E1 to E5' },
  { names: ['pg_ctl'], debian: 'postgresql', needs: 'E1, E2, E4, E5' },
  { names: ['rabbitmq-server'], debian: 'rabbitmq-server', needs: 'E5' },
  { names: ['nginx'], debian: 'nginx', needs: 'E1, two servers' },
  { names: ['wrk'], debian: 'wrk', needs: 'load (autocannon where it is missing)' },
  { names: ['go'], debian: 'golang-go', needs: 'E2, the programs in Go' },
  { names: ['python3'], debian: 'python3', needs: 'E2, the programs in Python' },
]

/** Outside of the PATH of ordinary users. */
const PLACES = [
  '/usr/sbin',
  '/usr/local/sbin',
  '/usr/local/bin',
  '/opt/homebrew/bin',
  '/opt/homebrew/sbin',
  '/usr/local/go/bin',
]

/** The program's path; undefined: it is not on this machine. */
export function programOf(name: string): string | undefined {
  const path = (process.env.PATH ?? '').split(delimiter).filter((place) => place !== '')
  return [...path, ...PLACES, ...postgresPlaces()].map((place) => join(place, name)).find(isProgram)
}

/** Debian keeps PostgreSQL's versions side by side, outside of the PATH. */
function postgresPlaces(): string[] {
  const all = '/usr/lib/postgresql'
  return existsSync(all) ? readdirSync(all).map((version) => join(all, version, 'bin')) : []
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Installs the lab's npm packages if they are missing or older than the lock file. */
export function installPackages(): void {
  const mark = join(folder, 'node_modules', '.package-lock.json')
  const modified = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (modified(mark) >= modified(join(folder, 'package-lock.json'))) return
  console.error('installing the npm packages of the lab, into lab/node_modules')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error('npm ci failed in lab/; the lab needs its packages')
}

/** Installs Debian packages where it may, and says which are missing. */
export async function installPrograms(): Promise<void> {
  const isMissing = ({ names }: Program) => names.every((name) => programOf(name) === undefined)
  for (const { debian } of PROGRAMS.filter(isMissing)) {
    if (!mayInstall()) break
    const trouble = await install(debian, 'the lab')
    if (trouble !== '') console.error(`${debian}:${trouble}`)
  }
  const missing = PROGRAMS.filter(isMissing)
  if (missing.length === 0) return
  const list = missing.map(({ debian, needs }) => `  ${debian.padEnd(16)} ${needs}`)
  const words = missing.map(({ debian }) => debian).join(' ')
  console.error(`Missing; what needs them is left out. As root: apt-get install ${words}\n${list.join('\n')}`)
}
