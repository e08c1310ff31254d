/** What can be wrong with a PostgreSQL server and the schema of Millpond there: see `../doctor.ts`. */
import { safeText } from '../../values/errors/safe-error.ts'
import {
  clockFinding,
  countFindings,
  type Finding,
  leaseFinding,
  looked,
  notCounted,
  type SchemaState,
  STUCK,
} from '../examination.ts'
import { readSchema } from './connection/migrate.ts'
import { Pg } from './connection/pg.ts'
import { openPool } from './connection/pool.ts'
import { examineHistory } from './doctor-history.ts'
import { stateOf, toMillpondError } from './errors.ts'
import type { Patient } from './patient.ts'
import { settingsOf } from './settings.ts'

const OLDEST = 13
const PATIENCE = 10_000
/** Ms after which the server stops comparing counts with jobs, of which it reads all. */
const COUNTING = 5000

/** @throws StoreUnavailable, InvalidOption, DriverMissing */
export async function examine(url: string): Promise<Finding[]> {
  return withServer(url, async (patient) => {
    // Whether there is a server at all.
    await patient.ask('select 1')
    const found: Finding[] = []
    for (const [name, look] of CHECKS) found.push(...(await looked(name, () => look(patient), safeText)))
    return [...found, ...(await examineHistory(patient))]
  })
}

export async function schemaState(url: string): Promise<SchemaState> {
  return withServer(url, async ({ database, schema }) => {
    const { found, newest, isCurrent } = await readSchema(database, schema)
    return { found, newest, isCurrent }
  })
}

async function withServer<T>(url: string, use: (patient: Patient) => Promise<T>): Promise<T> {
  const settings = settingsOf(url, {})
  const { schema, deadline, timeout } = settings
  const database = new Pg(
    await openPool(settings, { max: 2, patience: Math.min(PATIENCE, timeout) }),
    deadline,
    timeout,
  )
  try {
    return await use({ schema, database, ask: (sql) => database.run(sql) })
  } catch (error) {
    throw toMillpondError(error)
  } finally {
    await database.end().catch(() => {})
  }
}

type Check = (patient: Patient) => Promise<Finding[]>

const CHECKS: readonly (readonly [string, Check])[] = [
  ['version', versions],
  ['writes', writes],
  ['durability', durability],
  ['tables', tables],
  ['leases', leases],
  ['counts', counts],
  ['rights', rights],
  ['clock', clock],
]

async function versions({ ask, database, schema }: Patient): Promise<Finding[]> {
  const [[server = '', number] = []] = await ask(
    "select current_setting('server_version'), current_setting('server_version_num')",
  )
  const { found, newest, isCurrent } = await readSchema(database, schema)
  const text = `PostgreSQL ${server}, schema ${schema} of version ${found}`
  if (Number(number) < OLDEST * 10_000) {
    return [{ check: 'version', level: 'problem', text, action: `use PostgreSQL ${OLDEST} or later` }]
  }
  if (found > newest) {
    const action = 'upgrade this Millpond'
    return [{ check: 'version', level: 'problem', text: `${text}; this Millpond knows ${newest}`, action }]
  }
  if (found === 0) {
    const action = 'run millpond migrate with the role that is to own the schema'
    return [{ check: 'version', level: 'problem', text: `${text}: not installed, or this role may not use it`, action }]
  }
  if (!isCurrent) {
    const action = 'run millpond migrate with the role that owns the schema'
    return [{ check: 'version', level: 'note', text: `${text}; its functions are of another release`, action }]
  }
  return [{ check: 'version', level: 'ok', text }]
}

async function writes({ ask }: Patient): Promise<Finding[]> {
  const [[isStandby, isReadOnly] = []] = await ask(
    "select pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'",
  )
  if (isStandby === 't') {
    const text = 'the server is a standby: it takes no job'
    return [{ check: 'writes', level: 'problem', text, action: 'use the URL of the primary' }]
  }
  if (isReadOnly === 't') {
    const text = 'transactions of this role are read-only: it takes no job'
    const action = 'reset default_transaction_read_only of the role, the database or the server'
    return [{ check: 'writes', level: 'problem', text, action }]
  }
  return [{ check: 'writes', level: 'ok', text: 'the server takes writes' }]
}

/** Settings under which an acknowledged job can be lost. */
async function durability({ ask }: Patient): Promise<Finding[]> {
  const rows = await ask(`select name, setting from pg_catalog.pg_settings
    where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'zero_damaged_pages')`)
  const setting = new Map(rows.map(([name, value]) => [name, value]))
  const found: Finding[] = []
  const add = (level: 'warning' | 'problem', text: string, action: string) =>
    found.push({ check: 'durability', level, text, action })
  if (setting.get('fsync') === 'off')
    add('problem', 'fsync is off: a crash of the machine can destroy the database', 'set fsync = on')
  if (setting.get('full_page_writes') === 'off') {
    add('problem', 'full_page_writes is off: a crash of the machine can damage pages', 'set full_page_writes = on')
  }
  if (setting.get('synchronous_commit') === 'off') {
    const text = 'synchronous_commit is off: a crash of the server loses the last moments of acknowledged pushes'
    add('warning', text, 'set synchronous_commit = on, for the database or the role of Millpond')
  }
  if (setting.get('zero_damaged_pages') === 'on') {
    add('problem', 'zero_damaged_pages is on: damaged pages are emptied without a word', 'set zero_damaged_pages = off')
  }
  return found.length > 0 ? found : [{ check: 'durability', level: 'ok', text: 'what is committed is on the disk' }]
}

async function tables({ ask, database, schema }: Patient): Promise<Finding[]> {
  const wanted = await readSchema(database, schema)
  if (wanted.found === 0) return []
  const there = new Map(
    (
      await ask(`select c.relname, coalesce(i.indisvalid, true) from pg_catalog.pg_class c
        left join pg_catalog.pg_index i on i.indexrelid = c.oid where c.relnamespace = '${schema}'::regnamespace`)
    ).map(([name, valid]) => [name, valid === 't']),
  )
  const missing = [...wanted.tables, ...wanted.indexes].filter((name) => !there.has(name))
  const invalid = [...there].flatMap(([name, isValid]) => (isValid ? [] : [name]))
  const found: Finding[] = []
  if (missing.length > 0) {
    const action = 'make them again, as contract/postgres/migrations has them'
    found.push({ check: 'tables', level: 'problem', text: `missing: ${missing.join(', ')}`, action })
  }
  if (invalid.length > 0) {
    found.push({
      check: 'tables',
      level: 'problem',
      text: `indexes that are not used, as they are invalid: ${invalid.join(', ')}`,
      action: 'REINDEX them',
    })
  }
  return found.length > 0 ? found : [{ check: 'tables', level: 'ok', text: 'all tables and indexes are there' }]
}

async function leases({ ask, schema }: Patient): Promise<Finding[]> {
  const [[count] = []] = await ask(`select count(*) from ${schema}.running
    where lease_until < extract(epoch from clock_timestamp()) * 1000 - ${STUCK}`)
  return [leaseFinding(Number(count))]
}

/** In one statement, which sees one state of the tables. */
async function counts({ ask, schema }: Patient): Promise<Finding[]> {
  const jobs = ['waiting', 'running', 'done', 'retired'].map(
    (name) => `select queue, state, 1, 0 from ${schema}.${name}`,
  )
  const moves = ['totals', 'moves'].flatMap((name) => [
    `select queue, becomes, 0, count from ${schema}.${name}`,
    `select queue, was, 0, -count from ${schema}.${name}`,
  ])
  const compare = `select q.name, state, sum(counted), sum(there)
    from (${[...jobs, ...moves].join(' union all ')}) as each(queue, state, there, counted)
    join ${schema}.queues as q on q.id = each.queue where state not in ('new', 'gone')
    group by q.name, state having sum(counted) <> sum(there) order by q.name, state`
  const action = 'run the statement of docs/postgres.md, "Counts": it makes them right'
  try {
    const wrong = await ask(`set local statement_timeout = ${COUNTING}; ${compare}`)
    const miscounts = wrong.map(([queue, state, counted, there]) => ({
      ...{ queue: String(queue), state: String(state) },
      ...{ counted: Number(counted), there: Number(there) },
    }))
    return countFindings(miscounts, () => action)
  } catch (error) {
    if (stateOf(error) !== '57014') throw error
    return notCounted(`if stats and jobs disagree: ${action}`)
  }
}

async function rights({ ask, schema }: Patient): Promise<Finding[]> {
  const found: Finding[] = []
  const [[role, isSuper, owns] = []] =
    await ask(`select current_user, r.rolsuper, pg_has_role(current_user, n.nspowner, 'usage')
    from pg_catalog.pg_roles r left join pg_catalog.pg_namespace n on n.nspname = '${schema}' where r.rolname = current_user`)
  const note = (text: string, action: string) => found.push({ check: 'rights', level: 'note', text, action })
  const advice = `let it work as a role of its own: select ${schema}.allow('ROLE', 'worker')`
  if (isSuper === 't') note(`${role} is a superuser`, advice)
  else if (owns === 't') note(`${role} owns the schema, so it can change it`, `if this is an application: ${advice}`)
  const [[lacking] = []] = await ask(`select count(*) from pg_catalog.pg_proc p
    where p.pronamespace = '${schema}'::regnamespace and p.prosecdef and obj_description(p.oid, 'pg_proc') = 'Part of Millpond.'
      and not has_function_privilege(current_user, p.oid, 'execute')`)
  if (Number(lacking) > 0) {
    note(
      `${role} may not call ${lacking} of the functions, as a producer may not`,
      `if it is to work: select ${schema}.allow('${role}', 'worker')`,
    )
  }
  const others = await ask(`select distinct coalesce(r.rolname, 'PUBLIC') from pg_catalog.pg_class c
    cross join lateral pg_catalog.aclexplode(c.relacl) a left join pg_catalog.pg_roles r on r.oid = a.grantee
    where c.relnamespace = '${schema}'::regnamespace and c.relkind in ('r', 'p') and a.grantee <> c.relowner
      and a.privilege_type in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')`)
  if (others.length > 0) {
    const names = others.map(([name]) => name).join(', ')
    const text = `${names} may write to the tables, around the functions that keep them right`
    found.push({ check: 'rights', level: 'warning', text, action: 'revoke those rights; functions need none' })
  }
  return found.length > 0
    ? found
    : [{ check: 'rights', level: 'ok', text: `${role} may call the functions, and nobody else writes to the tables` }]
}

async function clock({ ask }: Patient): Promise<Finding[]> {
  const before = Date.now()
  const [[now] = []] = await ask('select extract(epoch from clock_timestamp()) * 1000')
  // Its milliseconds have fractions, and ours have none.
  return [clockFinding(Number(now), [before - 1, Date.now() + 1])]
}
