/** A streaming replica of a PostgreSQL server, which may lag by as much as a test wants. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { untilCalm } from '../support/until.ts'
import { ordinaryAccount } from './account.ts'
import { guard } from './guard.ts'
import { dataIn, type PostgresOptions, type PostgresServer, startOver } from './postgres.ts'
import { runTool } from './process.ts'

export interface ReplicaOptions extends PostgresOptions {
  /** `recovery_min_apply_delay` in milliseconds: commits show that much later here. Default 0. `setApplyDelay` changes it. */
  applyDelay?: number
}

let replicas = 0

export async function startReplica(
  primary: PostgresServer,
  { settings = {}, applyDelay = 0 }: ReplicaOptions = {},
): Promise<PostgresServer> {
  const account = ordinaryAccount()
  const folder = await guard().folder(account)
  const slot = `replica_${process.pid}_${++replicas}`
  await runTool({
    command: join(primary.programs, 'pg_basebackup'),
    args: [
      ...['--pgdata', dataIn(folder), '--host', '127.0.0.1', '--port', `${primary.port}`, '--username', 'postgres'],
      ...['--wal-method', 'stream', '--checkpoint', 'fast', '--no-sync'],
      // The slot makes the primary keep what a replica needs that is down for a while.
      ...['--create-slot', '--slot', slot],
    ],
    folder,
    account,
  })
  // Not by --write-recovery-conf: it names options that a server older than the tool does not know.
  await writeFile(join(dataIn(folder), 'standby.signal'), '')
  return startOver(primary.programs, 'postgres-replica', folder, account, {
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres`,
    primary_slot_name: slot,
    recovery_min_apply_delay: `${applyDelay}ms`,
    wal_retrieve_retry_interval: '100ms', // 5 s otherwise, after the primary was restarted
    ...settings,
  })
}

/** Changes the replica's delay while it runs; it holds for what waits already, too. @param delay in milliseconds */
export const setApplyDelay = (replica: PostgresServer, delay: number): Promise<void> =>
  replica.set('recovery_min_apply_delay', `${delay}ms`)

/** Waits until the replica shows everything that is committed on the primary now. */
export async function caughtUp(primary: PostgresServer, replica: PostgresServer): Promise<void> {
  const there = await primary.query('select pg_current_wal_lsn()')
  await untilCalm(async () => {
    return (await replica.query(`select pg_last_wal_replay_lsn() >= '${there}'`)) === 't'
  }, `the replica has replayed ${there}`)
}
