import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const emails = pond.queue<{ id: number; to: string }>('emails')
const data = { id: 42, to: 'ada@example.org' }
const rows = [data, { id: 43, to: 'bob@example.org' }]
