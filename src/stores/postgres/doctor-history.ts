/** What keeps old rows and old log of PostgreSQL alive: open transactions, slots, publications, and how much has gathered. */
import { safeText } from '../../values/errors/safe-error.ts'
import { type Finding, looked } from '../examination.ts'
import type { Patient } from './patient.ts'

/** Seconds that a transaction may be open before it is told of. */
const OLD = 300
const MEBIBYTE = 1024 * 1024
/** Of write-ahead log that a slot keeps. */
const MUCH_LOG = 1024 * MEBIBYTE
/** Dead rows of a table, and their share, from which on it is worth telling. */
const BLOATED = { rows: 100_000, share: 0.5 }

type Asked = Pick<Patient, 'ask' | 'schema'>

export async function examineHistory(patient: Asked): Promise<Finding[]> {
  const found: Finding[] = []
  for (const [name, look] of [
    ['transactions', transactions],
    ['slots', slots],
    ['publications', publications],
    ['bloat', bloat],
  ] as const) {
    found.push(...(await looked(name, () => look(patient), safeText)))
  }
  return found
}

/** VACUUM removes no row that was deleted after such a transaction began, and each deletion of a job leaves one. */
async function transactions({ ask }: Asked): Promise<Finding[]> {
  const found: Finding[] = []
  const open =
    await ask(`select pid, usename, application_name, state, extract(epoch from clock_timestamp() - xact_start)::bigint
    from pg_catalog.pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      and xact_start < clock_timestamp() - interval '${OLD} seconds' order by xact_start limit 5`)
  for (const [pid, user, application, state, seconds] of open) {
    const who = `process ${pid} of ${user}${application ? ` (${application})` : ''}`
    const text = `${who} has a transaction open for ${Math.round(Number(seconds) / 60)} min (${state}): VACUUM can remove nothing newer`
    found.push({ check: 'transactions', level: 'warning', text, action: `end it: select pg_terminate_backend(${pid})` })
  }
  const prepared = await ask(`select count(*) from pg_catalog.pg_prepared_xacts
    where database = current_database() and prepared < clock_timestamp() - interval '${OLD} seconds'`)
  if (Number(prepared[0]?.[0]) > 0) {
    const text = `${prepared[0]?.[0]} prepared transactions are open for long: VACUUM can remove nothing newer`
    found.push({
      check: 'transactions',
      level: 'warning',
      text,
      action: 'COMMIT PREPARED or ROLLBACK PREPARED; pg_prepared_xacts lists them',
    })
  }
  if (found.length > 0) return found
  const [[sees] = []] = await ask("select pg_has_role(current_user, 'pg_read_all_stats', 'usage')")
  if (sees === 't') return [{ check: 'transactions', level: 'ok', text: 'no transaction is open for long' }]
  const text = 'this role sees its own transactions alone'
  return [{ check: 'transactions', level: 'problem', text, action: 'grant it pg_read_all_stats' }]
}

async function slots({ ask }: Asked): Promise<Finding[]> {
  const rows = await ask(`select slot_name, active, xmin is not null or catalog_xmin is not null,
      pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, restart_lsn)::bigint
    from pg_catalog.pg_replication_slots`)
  const found: Finding[] = rows.flatMap(([name, active, holds, bytes]): Finding[] => {
    const kept = `${Math.round(Number(bytes ?? 0) / MEBIBYTE)} MiB of write-ahead log`
    if (active !== 't') {
      const text = `the slot ${name} is used by nobody, and keeps ${kept}${holds === 't' ? ' and old rows' : ''}`
      const level = Number(bytes ?? 0) > MUCH_LOG ? 'problem' : 'warning'
      const action = `connect its standby or subscriber, or: select pg_drop_replication_slot('${name}')`
      return [{ check: 'slots', level, text, action }]
    }
    if (Number(bytes ?? 0) < MUCH_LOG) return []
    return [
      {
        check: 'slots',
        level: 'warning',
        text: `the slot ${name} is behind, and keeps ${kept}`,
        action: 'look at its standby or subscriber',
      },
    ]
  })
  const text =
    rows.length === 0 ? 'there are no replication slots' : 'every replication slot is used and near the end of the log'
  return found.length > 0 ? found : [{ check: 'slots', level: 'ok', text }]
}

async function publications({ ask, schema }: Asked): Promise<Finding[]> {
  const rows = await ask(
    `select pubname, count(*) from pg_catalog.pg_publication_tables where schemaname = '${schema}' group by 1`,
  )
  if (rows.length === 0) return [{ check: 'publications', level: 'ok', text: 'no publication has tables of Millpond' }]
  return rows.map(([name, count]) => ({
    check: 'publications',
    level: 'note' as const,
    text: `the publication ${name} has ${count} tables of Millpond: its subscribers get every change of every job`,
    action: `unless that is meant, leave the schema ${schema} out of it`,
  }))
}

async function bloat({ ask, schema }: Asked): Promise<Finding[]> {
  const rows =
    await ask(`select relname, n_dead_tup, n_live_tup, pg_relation_size(relid), last_autovacuum is null and last_vacuum is null
    from pg_catalog.pg_stat_user_tables where schemaname = '${schema}' and n_dead_tup > ${BLOATED.rows}
      and n_dead_tup > ${BLOATED.share} * (n_live_tup + n_dead_tup)`)
  const found: Finding[] = rows.map(([table, dead, live, bytes, never]) => {
    const size = `${Math.round(Number(bytes) / MEBIBYTE)} MiB`
    const since = never === 't' ? ', and no VACUUM ever ran' : ''
    const text = `${schema}.${table} (${size}) has ${dead} dead rows and ${live} live ones${since}`
    return {
      check: 'bloat',
      level: 'warning',
      text,
      action: `see that autovacuum runs; now: VACUUM ${schema}.${table}`,
    }
  })
  const off = await ask(`select name from pg_catalog.pg_settings
    where name in ('autovacuum', 'track_counts') and setting = 'off' order by name`)
  for (const [name] of off) {
    const text = `${name} is off, so no autovacuum runs: tables grow without end`
    found.push({ check: 'bloat', level: 'problem', text, action: `set ${name} = on` })
  }
  const without = await ask(`select relname from pg_catalog.pg_class c,
      lateral pg_catalog.pg_options_to_table(c.reloptions) o
    where c.relnamespace = '${schema}'::regnamespace and c.relkind = 'r'
      and o.option_name = 'autovacuum_enabled' and not o.option_value::boolean order by relname`)
  for (const [table] of without) {
    const text = `autovacuum is off for ${schema}.${table}, which grows without end`
    const action = `alter table ${schema}.${table} reset (autovacuum_enabled)`
    found.push({ check: 'bloat', level: 'problem', text, action })
  }
  return found.length > 0 ? found : [{ check: 'bloat', level: 'ok', text: 'no table has many dead rows' }]
}
