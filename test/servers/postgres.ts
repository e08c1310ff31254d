import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { untilCalm } from '../support/until.ts'
import { type Account, ordinaryAccount } from './account.ts'
import { guard, type Running } from './guard.ts'
import { freePort } from './ports.ts'
import { launch, type Recipe, runTool, ServerProcess } from './process.ts'
import { postgresFolder } from './programs.ts'
import { run } from './run.ts'

/** Server parameters, such as `{ shared_buffers: '256MB' }`. */
export type Settings = Readonly<Record<string, string | number>>

export interface PostgresOptions {
  /** Besides PostgreSQL's defaults (fsync on, synchronous commits) and 200 connections. */
  settings?: Settings
}

/** Its superuser `postgres` needs no password: only this machine can reach it. */
export class PostgresServer extends ServerProcess {
  /** Where its programs are. */
  readonly programs: string

  constructor(recipe: Recipe, running: Running, programs: string) {
    super(recipe, running)
    this.programs = programs
  }

  /** Runs statements as superuser, each for itself, in a session of their own; returns the rows, columns separated by `|`. */
  query(...statements: string[]): Promise<string> {
    return this.queryAt(this.url, ...statements)
  }

  /** The same over another way to it, such as PgBouncer, or as another role. */
  queryAt(url: string, ...statements: string[]): Promise<string> {
    return run(join(this.programs, 'psql'), url, '-XAtqw', ...statements.flatMap((statement) => ['-c', statement]))
  }

  override async stop(): Promise<void> {
    // Killed, it left its shared memory behind, which only the next start over the same data frees.
    if (this.how === 'SIGKILL') await this.restart().catch(() => {})
    await super.stop()
  }

  /** Changes a parameter that needs no restart, for good; resolves when new sessions have it. */
  async set(parameter: string, value: string | number): Promise<void> {
    const before = await this.query('select pg_conf_load_time()')
    await this.query(`alter system set ${parameter} = '${value}'`, 'select pg_reload_conf()')
    await untilCalm(
      async () => before !== (await this.query('select pg_conf_load_time()')),
      'the configuration is loaded',
    )
  }
}

export async function startPostgres({ settings = {} }: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = await postgresFolder()
  const account = ordinaryAccount()
  const folder = await guard().folder(account)
  await runTool({
    command: join(programs, 'initdb'),
    // --no-sync: of the empty database, not of what is written to it later.
    args: [
      ...['--pgdata', dataIn(folder), '--username', 'postgres', '--auth', 'trust'],
      ...['--encoding', 'UTF8', '--locale', 'C', '--no-sync'],
    ],
    folder,
    account,
  })
  return startOver(programs, 'postgres', folder, account, settings)
}

/** Starts PostgreSQL over the data that is in the folder. */
export async function startOver(
  programs: string,
  name: string,
  folder: string,
  account: Account | undefined,
  settings: Settings,
): Promise<PostgresServer> {
  const port = await freePort()
  const all = { listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: 200, ...settings, port }
  const lines = Object.entries(all).map(
    ([parameter, value]) => `${parameter} = '${`${value}`.replaceAll("'", "''")}'\n`,
  )
  await appendFile(join(dataIn(folder), 'postgresql.conf'), lines.join(''))
  const recipe: Recipe = {
    name,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    folder,
    command: join(programs, 'postgres'),
    args: ['-D', dataIn(folder)],
    account,
    ready: /ready to accept (read[ -]only )?connections/,
    quit: 'SIGINT', // a fast shutdown: it waits for no client
    drop: 'SIGQUIT', // an immediate one: no checkpoint, but its children end and its shared memory is freed
    // After SIGKILL its children live on until they notice. PostgreSQL itself tells whether any does.
    notYet: /pre-existing shared memory block|lock file "postmaster.pid" already exists/,
  }
  return new PostgresServer(recipe, await launch(recipe), programs)
}

export const dataIn = (folder: string): string => join(folder, 'data')
