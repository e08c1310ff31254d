/** The web server that `millpond init` writes, for each framework. */
type Server = (ending: string) => string

const HEAD = (ending: string) => `import { emails, STORE } from './queues.${ending}'

// On SIGTERM and SIGINT the requests under way are answered first.
`
const TAIL = `// curl -i localhost:3000/emails -H 'content-type: application/json' -d '{"to":"ada@example.org"}'
// The answer has the address of the job; with -H 'prefer: wait=10' it has the result.
`

const express: Server = (ending) => `// Takes requests, answers at once, and leaves the work to worker.${ending}.
import express from 'express'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { closeServer, toNode } from 'millpond/web/node'
${HEAD(ending)}const pond = await Millpond.open(STORE, { signals: { before: () => closeServer(server) } })

const app = express()
app.post('/emails', toNode(accept(emails(pond))))
app.all('/jobs/:id', toNode(follow(pond)))

${TAIL}const port = Number(process.env.PORT ?? 3000)
const server = app.listen(port, '127.0.0.1', () => console.log(\`listening on http://127.0.0.1:\${port}\`))
`

const fastify: Server = (ending) => `// Takes requests, answers at once, and leaves the work to worker.${ending}.
import fastify from 'fastify'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { toFastify } from 'millpond/web/fastify'
import { closeServer } from 'millpond/web/node'
${HEAD(ending)}const before = async () => {
  await closeServer(app.server)
  await app.close()
}
const pond = await Millpond.open(STORE, { signals: { before } })

const app = fastify()
app.register(toFastify(accept(emails(pond))), { prefix: '/emails' })
app.register(toFastify(follow(pond)), { prefix: '/jobs' })

${TAIL}const port = Number(process.env.PORT ?? 3000)
console.log(\`listening on \${await app.listen({ port, host: '127.0.0.1' })}\`)
`

const hono: Server = (ending) => `// Takes requests, answers at once, and leaves the work to worker.${ending}.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { closeServer } from 'millpond/web/node'
${HEAD(ending)}const pond = await Millpond.open(STORE, { signals: { before: () => closeServer(server) } })

const postEmail = accept(emails(pond))
const followJob = follow(pond)
const app = new Hono()
app.post('/emails', (c) => postEmail(c.req.raw))
app.all('/jobs/:id', (c) => followJob(c.req.raw))

${TAIL}const port = Number(process.env.PORT ?? 3000)
const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, () => {
  console.log(\`listening on http://127.0.0.1:\${port}\`)
})
`

export const SERVERS = { express, fastify, hono }
