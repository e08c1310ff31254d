/** The service, `server.ts VARIANT PLACES [PORT]`: `POST /users` takes a name, answers 202 with an id. The same server for every variant. */
import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { machineTime } from '../clock.ts'
import { ready } from '../role.ts'
import { placesFrom, type Tally } from './service.ts'
import { variant } from './variants.ts'

const [name = '', places, wantedPort = '0'] = process.argv.slice(2)
const start = await variant(name).serve()
const service = await start(placesFrom(places))
const tally: Tally = { accepted: 0, last: 0 }
/** Requests that came and are not answered. */
let open = 0

const app = new Hono()
app.post('/users', async (c) => {
  const user = await c.req.json<{ name: string }>()
  open++
  try {
    const id = await service.accept(user.name)
    tally.accepted++
    tally.last = machineTime()
    return c.json({ id }, 202)
  } finally {
    open--
  }
})
app.get('/users/:id', (c) => service.follow?.(c.req.raw) ?? c.notFound())
app.onError((error, c) => {
  console.error(error)
  return c.text('Internal Server Error', 500)
})

serve({ fetch: app.fetch, port: Number(wantedPort), hostname: '127.0.0.1' }, ({ port }) => ready(told, port))

/** What the load generator left unanswered when it went is accepted or not, and the tally waits to know. */
async function told(message: unknown): Promise<Tally> {
  // While the load goes on, what is open is no matter.
  while (message !== 'now' && open > 0) await sleep(1)
  return tally
}
