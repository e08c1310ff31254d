import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const emails = pond.queue('emails')
// After the block:
const mail = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
const { status, headers } = await postEmail(new Request('http://shop.example/emails', mail))
if (status !== 202) throw new Error(`${status}`)
const followed = await followJob(new Request(`http://shop.example${headers.get('location')}`))
if (followed.status !== 200) throw new Error(`${followed.status}`)
