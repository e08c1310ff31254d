import { Millpond } from 'millpond'

interface Mail {
  to: string
}
const pond = await Millpond.open('memory:')
const emails = pond.queue<Mail>('emails', { capacity: 1 })
// After the block:
const statuses = [(await answer({ to: 'a' })).status, (await answer({ to: 'b' })).status]
if (statuses.join() !== '202,503') throw new Error(statuses.join())
