import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { closeServer } from 'millpond/web/node'

// On SIGTERM and SIGINT: first the requests under way, then the jobs that run, then the process.
const signals = { before: () => closeServer(server) }
const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db', { signals })
const emails = pond.queue<{ to: string }>('emails', { capacity: 100_000 })
emails.work((job) => `sent to ${job.data.to}`)

const postEmail = accept(emails)
const followJob = follow(pond)

// On Deno: Deno.serve(app.fetch); on Bun: export default app.
const app = new Hono()
app.post('/emails', (c) => postEmail(c.req.raw))
app.all('/jobs/:id', (c) => followJob(c.req.raw))

// curl -i localhost:3000/emails -H 'content-type: application/json' -H 'prefer: wait=10' -d '{"to":"ada@example.org"}'
const place = { port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' }
const server = serve({ fetch: app.fetch, ...place }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`)
})
