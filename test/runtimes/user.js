/** What a user of the package writes, in plain JavaScript, for Deno or Bun and the store of the first argument. It has to end by itself. */
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'

const pond = await Millpond.open(process.argv[2])
const emails = pond.queue('emails', { retry: { attempts: 3, backoff: () => 10 } })
emails.work((job) => {
  if (job.attempt === 1) throw new Error('the mail server is away')
  return `${job.data.to}, attempt ${job.attempt}`
})

const routes = { POST: accept(emails), GET: follow(pond) }
const handle = (request) => routes[request.method](request)
const server = globalThis.Deno
  ? globalThis.Deno.serve({ port: 0, hostname: '127.0.0.1', onListen() {} }, handle)
  : globalThis.Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: handle })
const origin = `http://127.0.0.1:${server.port ?? server.addr.port}`

const headers = { 'content-type': 'application/json', prefer: 'wait=10' }
const sent = await fetch(`${origin}/emails`, { method: 'POST', headers, body: '{"to":"ada@example.org"}' })
console.log(sent.status, await sent.text())
const { id } = await emails.push({ to: 'bob@example.org' })
const events = await fetch(`${origin}/jobs/${id}`, { headers: { accept: 'text/event-stream' } })
console.log(events.status, await events.text())

await (server.shutdown?.() ?? server.stop())
await pond.close()
