import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Millpond } from 'millpond'

interface Tables {
  users: { name: string }
}
const pond = await Millpond.open('sqlite:app.db', { driver: Database })
const emails = pond.queue<{ to: string }>('emails')
const made = new Database('app.db')
made.exec('create table users (name text)')
// BLOCK
if ((await emails.jobs('waiting')).length !== 2) throw new Error('two jobs should wait')
made.close()
// After the block:
