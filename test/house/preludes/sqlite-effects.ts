import { DatabaseSync } from 'node:sqlite'
import { Millpond } from 'millpond'

new DatabaseSync('effects.db').exec('create table rates (day text, rate float)')
const pond = await Millpond.open('sqlite:effects.db')
const emails = pond.queue<{ day: string }>('emails')
const fetchRate = async (data: { day: string }) => data.day.length
const { id } = await emails.push({ day: '2026-11-25' })
// After the block:
await pond.result(id, { timeout: '10s' })
