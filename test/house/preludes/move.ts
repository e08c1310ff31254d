import { Millpond } from 'millpond'

const old = await Millpond.open('sqlite:jobs.db')
await old.queue('emails').push({ to: 'a@example.org' })
await old.close()
