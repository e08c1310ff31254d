import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const isAdmin = (request: Request) => request.headers.get('cookie') === 'admin'
const nameOf = (_: Request) => 'ada'
// After the block:
const page = await queues(new Request('http://shop.example/admin/queues/', { headers: { cookie: 'admin' } }))
if (page.status !== 200) throw new Error(`${page.status}`)
const refused = await queues(new Request('http://shop.example/admin/queues/'))
if (refused.status !== 403) throw new Error(`${refused.status}`)
