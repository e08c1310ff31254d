import { Millpond } from 'millpond'
import pg from 'pg'

const url = process.env.MILLPOND_TEST_POSTGRES ?? ''
const schema = `docs_${process.pid}_effects`
const pond = await Millpond.open(url, { schema })
const emails = pond.queue<{ day: string }>('emails')
const client = new pg.Client(url)
await client.connect()
await client.query('create table if not exists rates (day text, rate float)')
const fetchRate = async (data: { day: string }) => data.day.length
const { id } = await emails.push({ day: '2026-11-25' })
// After the block:
await pond.result(id, { timeout: '10s' })
await pond.close()
await client.query(`drop schema ${schema} cascade; drop table rates`)
