import type { AddressInfo } from 'node:net'
import express from 'express'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { closeServer, toNode } from 'millpond/web/node'

// On SIGTERM and SIGINT: first the requests under way, then the jobs that run, then the process.
const signals = { before: () => closeServer(server) }
const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db', { signals })
const emails = pond.queue<{ to: string }>('emails', { capacity: 100_000 })
emails.work((job) => `sent to ${job.data.to}`)

const app = express()
app.post('/emails', toNode(accept(emails)))
app.all('/jobs/:id', toNode(follow(pond)))

// curl -i localhost:3000/emails -H 'content-type: application/json' -H 'prefer: wait=10' -d '{"to":"ada@example.org"}'
const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
