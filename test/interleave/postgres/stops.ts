/**
 * Stops inside a call. A trigger on every table, made by the test in the store's schema, waits for an advisory lock where the session has asked for it.
 * So a call stops after a statement took its view of the data and before it touches a row, or after it wrote and before the next statement begins.
 */

import type pg from 'pg'

/** The class of the advisory locks; the number is that of the session. */
const LOCKS = 7_700_077

/** Tables that sessions may stop at: all but those that describe the schema, and the parts of others. */
export async function installStops(client: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await client.query(
    `select c.relname as name from pg_class as c where relnamespace = $1::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname not in ('meta', 'unharmed')`,
    [schema],
  )
  const tables = rows.map(({ name }) => String(name))
  await client.query(`
    create or replace function ${schema}.explorer_stop() returns trigger language plpgsql as $$
    declare
      v_here text := lower(tg_when) || ' ' || tg_table_name;
    begin
      perform set_config('explorer.seen', coalesce(current_setting('explorer.seen', true), '') || ' ' || tg_table_name, true);
      if current_setting('explorer.stop', true) = v_here then
        perform set_config('explorer.stop', '', false);
        perform pg_advisory_xact_lock(${LOCKS}, current_setting('explorer.session')::integer);
      end if;
      return null;
    end $$;
    ${tables
      .flatMap((table) =>
        ['before', 'after'].map(
          (when) => `create or replace trigger explorer_${when} ${when} insert or update or delete on ${schema}.${table}
            for each statement execute function ${schema}.explorer_stop();`,
        ),
      )
      .join('\n')}`)
  return tables
}

/** Holds the locks at which sessions stop. */
export class Gate {
  readonly #client: pg.Client
  readonly #pid: number

  constructor(client: pg.Client, pid: number) {
    this.#client = client
    this.#pid = pid
  }

  get pid(): number {
    return this.#pid
  }

  async close(session: number): Promise<void> {
    await this.#client.query('select pg_advisory_lock($1, $2)', [LOCKS, session])
  }

  async open(session: number): Promise<void> {
    await this.#client.query('select pg_advisory_unlock($1, $2)', [LOCKS, session])
  }
}
