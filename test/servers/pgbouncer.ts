/** PgBouncer in transaction mode: a connection belongs to a client for as long as a transaction takes. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ordinaryAccount } from './account.ts'
import { guard } from './guard.ts'
import { freePort } from './ports.ts'
import { launch, type Recipe, ServerProcess } from './process.ts'
import { pgbouncerProgram } from './programs.ts'

export interface PgBouncerOptions {
  /** Connections to PostgreSQL per database and role. Default 20, as PgBouncer itself. */
  poolSize?: number
  /** Further lines of the section `[pgbouncer]`. */
  settings?: Readonly<Record<string, string | number>>
}

/** @param postgres URL of the server behind it, whose user may read `pg_shadow`: any role of that server can then log in */
export async function startPgBouncer(
  postgres: string,
  { poolSize = 20, settings = {} }: PgBouncerOptions = {},
): Promise<ServerProcess> {
  const command = await pgbouncerProgram()
  const account = ordinaryAccount()
  const folder = await guard().folder(account)
  const port = await freePort()
  const target = new URL(postgres)
  const user = decodeURIComponent(target.username) || 'postgres'
  const users = join(folder, 'users.txt')
  const file = join(folder, 'pgbouncer.ini')
  await writeFile(users, `"${user}" "${decodeURIComponent(target.password)}"\n`, { mode: 0o644 })
  await writeFile(
    file,
    section('databases', { '*': `host=${target.hostname} port=${target.port || 5432} auth_user=${user}` }) +
      section('pgbouncer', {
        listen_addr: '127.0.0.1',
        listen_port: port,
        unix_socket_dir: '',
        pool_mode: 'transaction',
        default_pool_size: poolSize,
        max_client_conn: 1000,
        auth_type: 'trust',
        auth_file: users,
        // PostgreSQL had no connection left for a moment. 15 s, as unless set, is longer than calls wait.
        server_login_retry: 1,
        // A process of the server keeps the plans for schemas that are gone, and looks through all of them at each change of the
        // catalog: after some hundred schemas a new one takes it 20 s. An hour, as unless set, is longer than all tests.
        server_lifetime: 20,
        ...settings,
      }),
  )
  const url = new URL(target)
  url.host = `127.0.0.1:${port}`
  const recipe: Recipe = {
    name: 'pgbouncer',
    url: url.href,
    port,
    folder,
    command,
    args: [file],
    account,
    ready: /process up/,
    quit: 'SIGTERM',
    drop: 'SIGKILL',
  }
  return new ServerProcess(recipe, await launch(recipe))
}

const section = (name: string, lines: Record<string, string | number>): string =>
  `[${name}]\n${Object.entries(lines)
    .map(([key, value]) => `${key} = ${value}\n`)
    .join('')}\n`
