import { Millpond } from 'millpond'
import { accept } from 'millpond/web'

const pond = await Millpond.open('memory:')
const orders = pond.queue<{ number: number }>('orders')
const reports = pond.queue('reports')
const sessionOf = (request: Request) => (request.headers.has('cookie') ? { userId: 'ada' } : undefined)
const tenantOf = (request: Request) => new URL(request.url).host
