import { Millpond } from 'millpond'

const pond = await Millpond.open('sqlite:app.db')
const emails = pond.queue<{ to: string }>('emails')
const users = new DatabaseSync('app.db')
users.exec('create table users (name text)')
users.close()
// After the block:
if ((await emails.jobs('waiting')).length !== 1) throw new Error('no job')
