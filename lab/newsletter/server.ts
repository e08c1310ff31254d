/** The web server: `server.ts VARIANT FOLDER PORT [SIZE WORKERS]`, port 0 for any free one. */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { ready } from '../role.ts'
import { tell } from './messages.ts'
import type { Bounds, Service } from './services/service.ts'
import { QUEUE_SIZE, WORKERS } from './settings.ts'

const [variant = '', folder = '', port = '0', size, workers] = process.argv.slice(2)
/** Of a queue in the process. */
const bounds: Bounds = { size: Number(size ?? QUEUE_SIZE), workers: Number(workers ?? WORKERS) }
const SERVICES: Record<string, () => Promise<{ open(folder: string, bounds: Bounds): Service | Promise<Service> }>> = {
  plain: () => import('./services/plain.ts'),
  array: () => import('./services/array.ts'),
  spill: () => import('./services/spill.ts'),
  millpond: () => import('./services/millpond.ts'),
}

const load = SERVICES[variant]
if (load === undefined) throw new Error(`no variant ${variant}: there are ${Object.keys(SERVICES).join(', ')}`)
const service = await (await load()).open(folder, bounds)

const app = new Hono()
app.post('/register', async (c) => {
  const { email } = await c.req.parseBody()
  if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email)) return c.json({ error: 'email: an address' }, 400)
  return service.register(email, c)
})
app.get('/registrations/:id', async (c) => {
  const state = await service.state?.(c.req.param('id'))
  return state === undefined ? c.notFound() : c.json({ state })
})

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(port) }, (address) => {
  ready(undefined, address.port)
  if (process.send !== undefined) void report()
})
// Clients reuse a connection: were it closed while idle, a request could meet its end.
if ('keepAliveTimeout' in server) server.keepAliveTimeout = 60_000

/** One report after the other: a slow one is not overtaken. */
async function report(): Promise<void> {
  tell({ kind: 'backlog', ...(await service.backlog()) })
  setTimeout(report, 200)
}
