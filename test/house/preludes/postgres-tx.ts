import { Millpond } from 'millpond'
import postgres from 'postgres'

const url = process.env.MILLPOND_TEST_POSTGRES ?? ''
const schema = `docs_${process.pid}_tx`
const pond = await Millpond.open(url, { schema })
const emails = pond.queue<{ to: string }>('emails')
const sql = postgres(url, { max: 1, onnotice: () => {} })
await sql`create temporary table users (name text)`
// After the block:
const waiting = await emails.jobs('waiting')
await sql.unsafe(`drop schema ${schema} cascade`)
if (waiting.length !== 1) throw new Error(`${waiting.length} jobs`)
