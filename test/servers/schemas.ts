/** The table by which test files hand emptied schemas on, on a PostgreSQL that lasts as long as the run. */
import pg from 'pg'

export const SCHEMAS = 'public.millpond_test_schemas'
/** The variable that says that the table is there. */
export const HANDED_ON = 'MILLPOND_TEST_SCHEMAS'

export async function makeTableOfSchemas(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`create table ${SCHEMAS} (name text primary key)`)
  await client.end()
  process.env[HANDED_ON] = 'yes'
}
