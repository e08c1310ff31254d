import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { closeServer, toNode } from 'millpond/web/node'

// On SIGTERM and SIGINT: first the requests under way, then the jobs that run, then the process.
const signals = { before: () => closeServer(server) }
const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db', { signals })
const emails = pond.queue<{ to: string }>('emails', { capacity: 100_000 })
emails.work((job) => `sent to ${job.data.to}`)

const postEmail = accept(emails)
const followJob = follow(pond)

// curl -i localhost:3000/emails -H 'content-type: application/json' -H 'prefer: wait=10' -d '{"to":"ada@example.org"}'
const server = createServer(
  toNode((request) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/emails') return postEmail(request)
    if (pathname.startsWith('/jobs/')) return followJob(request)
    return new Response('not found', { status: 404 })
  }),
)
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
