/** Finds the servers' programs on this machine; where they are missing, installs their packages if it may. */

import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { install, mayInstall } from './install.ts'
import { ServerMissing } from './server.ts'

interface Kit<T> {
  /** Name, and which programs of it must be there. */
  what: string
  debian: string
  brew: string
  find(): T | undefined
}

const POSTGRES = '/usr/lib/postgresql'

const oldest = { redis: 6.2, postgres: 13 }

export interface RedisPrograms {
  server: string
  cli: string
}

const redis: Kit<RedisPrograms> = {
  what: `Redis ${oldest.redis} or later (redis-server and redis-cli, or valkey-server and valkey-cli)`,
  debian: 'redis-server',
  brew: 'redis',
  find() {
    for (const name of ['redis', 'valkey']) {
      const server = find(`${name}-server`)
      const cli = find(`${name}-cli`)
      // "Redis server v=7.0.15 sha=…"
      if (server && cli && version(server, /v=(\d+\.\d+)/) >= oldest.redis) return { server, cli }
    }
    return undefined
  },
}

const postgres: Kit<string> = {
  what: `PostgreSQL ${oldest.postgres} or later (postgres, initdb, pg_basebackup and psql)`,
  debian: 'postgresql',
  brew: 'postgresql@17',
  find() {
    const folders = [...places(), ...debianFolders()]
    const all = ['postgres', 'initdb', 'pg_basebackup', 'psql']
    return folders.find(
      (folder) =>
        all.every((name) => isProgram(join(folder, name))) &&
        // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
        version(join(folder, 'postgres'), /\) (\d+)/) >= oldest.postgres,
    )
  },
}

const pgbouncer: Kit<string> = {
  what: 'PgBouncer (pgbouncer)',
  debian: 'pgbouncer',
  brew: 'pgbouncer',
  find: () => find('pgbouncer'),
}

export interface PrometheusPrograms {
  server: string
  /** Its tool that checks metrics and rules. */
  tool: string
}

const prometheus: Kit<PrometheusPrograms> = {
  what: 'Prometheus (prometheus and promtool)',
  debian: 'prometheus',
  brew: 'prometheus',
  find() {
    const server = find('prometheus')
    const tool = find('promtool')
    return server && tool ? { server, tool } : undefined
  },
}

/** Debian's and Homebrew's. The programs on Debian's PATH are scripts that change the account and run these. */
const RABBITMQ = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/sbin']

const rabbitmq: Kit<string> = {
  what: "RabbitMQ 3.10 or later (rabbitmq-server and rabbitmqctl, and Erlang's epmd)",
  debian: 'rabbitmq-server',
  brew: 'rabbitmq',
  find: () => find('epmd') && RABBITMQ.find((folder) => isProgram(join(folder, 'rabbitmq-server'))),
}

export const redisPrograms = (): Promise<RedisPrograms> => need(redis)

/** The folder that holds all of PostgreSQL's programs. */
export const postgresFolder = (): Promise<string> => need(postgres)

/** The folder of `rabbitmq-server` and `rabbitmqctl`. */
export const rabbitmqFolder = (): Promise<string> => need(rabbitmq)

export const pgbouncerProgram = (): Promise<string> => need(pgbouncer)

export const prometheusPrograms = (): Promise<PrometheusPrograms> => need(prometheus)

async function need<T>({ what, debian, brew, find }: Kit<T>): Promise<T> {
  if (process.env.MILLPOND_TEST_SERVERS === 'no') throw new ServerMissing('MILLPOND_TEST_SERVERS=no forbids servers')
  const found = find()
  if (found !== undefined) return found
  const trouble = mayInstall() ? await install(debian) : ''
  const installed = find()
  if (installed !== undefined) return installed
  throw new ServerMissing(
    `${what} is neither in the PATH nor in ${[...extraPlaces, `${POSTGRES}/*/bin`, ...RABBITMQ].join(', ')}. ` +
      `Install it: apt-get install ${debian} (as root the tests do it by themselves), or brew install ${brew}.${trouble}`,
  )
}

/** Looked into after the PATH. */
export const extraPlaces = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin']

const places = (): string[] => [
  ...(process.env.PATH ?? '').split(delimiter).filter((place) => place !== ''),
  ...extraPlaces,
]

/** Debian and its children keep PostgreSQL's versions side by side, outside of the PATH. The newest comes first. */
function debianFolders(): string[] {
  if (!existsSync(POSTGRES)) return []
  return readdirSync(POSTGRES)
    .sort((a, b) => Number(b) - Number(a))
    .map((name) => join(POSTGRES, name, 'bin'))
}

const find = (name: string): string | undefined =>
  places()
    .map((place) => join(place, name))
    .find(isProgram)

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The number that it gives itself; 0 if it gives none. */
function version(program: string, pattern: RegExp): number {
  const words = execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return Number(pattern.exec(words)?.[1] ?? 0)
}
