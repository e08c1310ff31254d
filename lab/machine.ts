/** What the figures depend on besides the code. */
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, existsSync, fdatasyncSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, freemem, loadavg, release, totalmem, type } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { DATA } from './data.ts'
import { median } from './statistics.ts'

export interface Facts {
  node: string
  sqlite: string
  cpu: string
  cores: number
  /** One minute's average before the run: over 0 something else was using the machine. */
  load: number
  memory: string
  system: string
  filesystem: string
  /** Of one appended 4 KiB page, in microseconds. */
  fdatasync: number
  /** With their versions. */
  rivals: string
}

const GIB = 1024 ** 3

const folder = new URL('./', import.meta.url)

export function facts(): Facts {
  mkdirSync(DATA, { recursive: true })
  return {
    node: process.version,
    sqlite: sqliteVersion(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    load: loadavg()[0] ?? 0,
    memory: `${(freemem() / GIB).toFixed(1)} of ${(totalmem() / GIB).toFixed(1)} GiB free`,
    system: `${type()} ${release()}`,
    filesystem: filesystem(),
    fdatasync: fdatasync(),
    rivals: Object.entries(versionsOfPackages())
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  }
}

/** Of the lab's packages that are installed. @param some all unless given */
export function versionsOfPackages(some?: readonly string[]): Record<string, string> {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return Object.fromEntries((some ?? Object.keys(dependencies)).flatMap(installed))
}

/** The library's version, and the commit where it is in a clone. */
export function ownVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', folder), 'utf8')) as { version: string }
  const { stdout, status } = spawnSync('git', ['describe', '--always', '--dirty'], { cwd: folder, encoding: 'utf8' })
  return status === 0 ? `${version}, commit ${stdout.trim()}` : version
}

function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:')
  const version = database.prepare('select sqlite_version() as version').get()?.version
  database.close()
  return String(version)
}

/** None where the packages are not installed, as not all experiments need them. */
function installed(name: string): [name: string, version: string][] {
  const places = ['node_modules', '../node_modules'].map((place) => new URL(`${place}/${name}/package.json`, folder))
  const file = places.find((each) => existsSync(each))
  if (file === undefined) return []
  return [[name, (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version]]
}

/** A file system in memory would make every durable figure a lie. */
function filesystem(): string {
  try {
    const [, line = ''] = execFileSync('df', ['-PT', DATA], { encoding: 'utf8' }).split('\n')
    const [device, kind] = line.split(/\s+/)
    return `${kind} on ${device}${kind === 'tmpfs' ? ', NOT A DISK' : ''}`
  } catch {
    return 'unknown'
  }
}

function fdatasync(): number {
  const path = `${DATA}/fdatasync-${process.pid}`
  const file = openSync(path, 'w')
  const page = Buffer.alloc(4096, 1)
  const times: number[] = []
  for (let i = 0; i < 200; i++) {
    writeSync(file, page)
    const began = performance.now()
    fdatasyncSync(file)
    times.push((performance.now() - began) * 1000)
  }
  closeSync(file)
  rmSync(path)
  return median(times)
}
