import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const emails = pond.queue<string>('emails')
const { id } = await emails.push('hello')
emails.work(() => 'sent')
const { signal } = new AbortController()
