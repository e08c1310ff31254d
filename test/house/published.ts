/**
 * The package as its users have it: packed by npm, and installed from that file into an empty project, beside its dependencies alone.
 *
 *   npm pack (builds) ──► npm init, npm install ──► node_modules/.cache/millpond-package/KEY: one for all tests of these sources
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { until } from '../support/until.ts'

const execute = promisify(execFile)
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/millpond-package')
/** What the package is made of. */
const SOURCES = [
  'src',
  'build',
  'contract',
  'docs',
  'examples',
  'monitoring',
  ':(glob)*.md',
  ':(glob)*.json',
  'LICENSE',
]

/** Most milliseconds that packing may take on a busy machine; half a minute on a quiet one. */
export const PACKING = 290_000

export interface Published {
  /** The project in which it is installed. Read it; what is written goes into a copy. */
  readonly project: string
  /** Bytes of the packed file. */
  readonly size: number
  /** What is in it, such as `dist/index.js`. */
  readonly files: readonly string[]
}

let known: Promise<Published> | undefined

/** Packs and installs it, unless this or another process has. */
export function published(): Promise<Published> {
  known ??= madeOnce()
  return known
}

async function madeOnce(): Promise<Published> {
  const place = join(CACHE, await keyOfSources())
  mkdirSync(CACHE, { recursive: true })
  await until(async () => existsSync(place) || locked(() => make(place)), 'the package is packed', PACKING)
  return { project: join(place, 'project'), ...JSON.parse(readFileSync(join(place, 'packed.json'), 'utf8')) }
}

/** A hash of all that the package is made of. */
async function keyOfSources(): Promise<string> {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...SOURCES]
  const { stdout } = await execute('git', args, { cwd: ROOT, maxBuffer: 1 << 24 })
  const hash = createHash('sha256')
  for (const file of new Set(stdout.split('\0'))) {
    if (existsSync(join(ROOT, file)) && file !== '') hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)))
  }
  return hash.digest('hex').slice(0, 16)
}

/** @returns false: another process is at it. One that ended midway does not count. */
async function locked(work: () => Promise<void>): Promise<boolean> {
  const lock = join(CACHE, 'lock')
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
  } catch {
    const pid = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0
    if (pid > 0 && !isRunning(pid)) rmSync(lock, { force: true })
    return false
  }
  try {
    await work()
    return true
  } finally {
    rmSync(lock)
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function make(place: string): Promise<void> {
  if (existsSync(place)) return
  // Those of other sources are of no use any more.
  for (const name of readdirSync(CACHE)) if (name !== 'lock') rmSync(join(CACHE, name), { recursive: true })
  const unfinished = join(CACHE, 'unfinished')
  const project = join(unfinished, 'project')
  mkdirSync(project, { recursive: true })
  const [packed] = JSON.parse(await npm(ROOT, 'pack', '--json', '--pack-destination', unfinished))
  await npm(project, 'init', '-y')
  // Its dependencies come from where they are installed already, so that the test needs no registry.
  const { dependencies } = manifestOf(ROOT)
  const names = Object.keys(dependencies ?? {})
  const near = Object.fromEntries(names.map((name) => [name, `file:${join(ROOT, 'node_modules', name)}`]))
  const manifest = {
    ...manifestOf(project),
    dependencies: { millpond: `file:${join(unfinished, packed.filename)}`, ...near },
    overrides: Object.fromEntries(names.map((name) => [name, `$${name}`])),
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
  const offline = ['--offline', '--cache', join(unfinished, 'npm'), '--no-audit', '--no-fund']
  await npm(project, 'install', '--install-links', '--ignore-scripts', ...offline)
  const files = packed.files.map(({ path }: { path: string }) => path)
  writeFileSync(join(unfinished, 'packed.json'), JSON.stringify({ size: packed.size, files }))
  renameSync(unfinished, place)
}

/** On the Node that runs this test. */
export async function npm(folder: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
  return (await execute('npm', args, { cwd: folder, env, maxBuffer: 1 << 24 })).stdout
}

interface ProjectManifest {
  type?: 'module' | 'commonjs'
  version?: string
  dependencies?: Record<string, string>
}

const manifestOf = (folder: string): ProjectManifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Lays it into a project of its own, with its dependencies, and with clients and tools that are installed here. */
export async function layPackage(
  project: string,
  beside: readonly string[] = [],
  type: 'module' | 'commonjs' = 'module',
): Promise<void> {
  const installed = (await published()).project
  cpSync(join(installed, 'node_modules'), join(project, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  for (const name of beside) layInstalled(project, name)
  const own = readdirSync(join(installed, 'node_modules')).filter((name) => !name.startsWith('.'))
  const dependencies = Object.fromEntries([...own, ...beside].map((name) => [name, '*']))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type, dependencies }))
}

/** A package that is installed here. @param as the name that it gets there */
export function layInstalled(project: string, name: string, as = name): void {
  const place = join(project, 'node_modules', as)
  mkdirSync(dirname(place), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules', name), place)
}

/**
 * Compiles the TypeScript of a project, as strictly as the sources, and with it the declarations that it imports.
 * @returns what is wrong, but in the declarations of other packages
 */
export async function faultsOf(project: string, options: object = {}): Promise<string[]> {
  const more = { noUnusedLocals: false, noUnusedParameters: false, skipLibCheck: false, paths: {} }
  const compilerOptions = { ...more, ...options }
  const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['**/*'], exclude: ['node_modules'] }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const compiled = execute(process.execPath, [compiler, '-p', project, '--pretty', 'false'], { cwd: project })
  const { stdout }: { stdout: string } = await compiled.catch((error) => error)
  // Lines that begin with a space explain the one before them.
  return stdout.split('\n').filter((line) => /^\S/.test(line) && !/^\S*node_modules\/(?!millpond\/)/.test(line))
}
