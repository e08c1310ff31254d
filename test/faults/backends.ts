/** Servers to be mistreated, and how to look past Millpond at what their jobs have done. */

import { execFileSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import { started } from '../servers/fixtures.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'

/** One run of an effect. */
export interface Effect {
  id: string
  fence: string
}

export interface Backend {
  url: string
  port: number
  /** SIGKILL to the server; with `all`, to every process that it has started as well. */
  crash(all: boolean): Promise<void>
  restart(): Promise<void>
  /** Rows of the table that workers with `transaction` write to. */
  effects(): Promise<Effect[]>
  /** Users who may do everything; any password will do. */
  addUsers(names: readonly string[]): Promise<void>
  /** How many connections there are now, by user. */
  connections(): Promise<Map<string, number>>
}

/** A store, and how its workers work. */
export interface Mode {
  name: string
  transaction: boolean
  start: () => Promise<{ backend: Backend; stop: () => Promise<void> }>
}

/** undefined: its programs are not on this machine, and the test is skipped. */
export async function backend(t: TestContext, mode: Pick<Mode, 'start'>): Promise<Backend | undefined> {
  return (await started(t, mode.start))?.backend
}

/** With every acknowledged write on its disk. */
async function redis(): Promise<{ backend: Backend; stop: () => Promise<void> }> {
  const server: RedisServer = await startRedis({ appendfsync: 'always' })
  const { url, port } = server
  let users: readonly string[] = []
  const addUsers = async (names: readonly string[]) => {
    for (const name of names) await server.command('acl', 'setuser', name, 'on', 'nopass', '~*', '&*', '+@all')
    users = names
  }
  return {
    backend: {
      url,
      port,
      crash: () => server.kill('SIGKILL'),
      async restart() {
        await server.restart()
        // Users that are in no file are gone with the process.
        await addUsers(users)
      },
      effects: async () => [],
      addUsers,
      async connections() {
        const list = await server.command('client', 'list')
        return tally([...list.matchAll(/ user=(\S+)/g)].map(([, user = '']) => user))
      },
    },
    stop: () => server.stop(),
  }
}

async function postgres(): Promise<{ backend: Backend; stop: () => Promise<void> }> {
  const server: PostgresServer = await startPostgres()
  const { url, port } = server
  // Nothing here is unique, so that an effect applied twice would show.
  await server.query('create table effects (id text, attempt integer, fence bigint)')
  return {
    backend: {
      url,
      port,
      async crash(all) {
        const family = all ? childrenOf(server.pid) : []
        await server.kill('SIGKILL')
        for (const pid of family) kill(pid)
      },
      restart: () => server.restart(),
      async effects() {
        const rows = await server.query('select id, fence from effects')
        return rows === '' ? [] : rows.split('\n').map(effectOf)
      },
      async addUsers(names) {
        await server.query(...names.map((name) => `create role ${name} superuser login`))
      },
      async connections() {
        const list = await server.query('select usename from pg_stat_activity where usename is not null')
        return tally(list.split('\n'))
      },
    },
    stop: () => server.stop(),
  }
}

function tally(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function effectOf(row: string): Effect {
  const [id = '', fence = ''] = row.split('|')
  return { id, fence }
}

function childrenOf(parent: number): number[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  return rows.map((row) => row.trim().split(/\s+/).map(Number)).flatMap(([pid = 0, of]) => (of === parent ? [pid] : []))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It noticed by itself that its parent is gone.
  }
}

export const MODES: readonly Mode[] = [
  { name: 'redis', transaction: false, start: redis },
  { name: 'postgres', transaction: false, start: postgres },
  { name: 'postgres, transaction: true', transaction: true, start: postgres },
]

/** The same server by another port, such as a proxy's. */
export function through(url: string, port: number): string {
  const other = new URL(url)
  other.port = `${port}`
  return other.href
}
