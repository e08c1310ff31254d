import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const reports = pond.queue<{ month: string }>('reports')
const api = createServer((_, answer) => answer.writeHead(429).end()).listen(0)
const url = `http://localhost:${(api.address() as AddressInfo).port}`
const limited = new Promise((resolve) => pond.on('rateLimited', resolve))
await reports.push({ month: 'May' })
// After the block:
await limited
