import fastify from 'fastify'
import { Millpond } from 'millpond'
import { accept, follow } from 'millpond/web'
import { toFastify } from 'millpond/web/fastify'
import { closeServer } from 'millpond/web/node'

// On SIGTERM and SIGINT: first the requests under way, then the jobs that run, then the process.
const signals = {
  before: async () => {
    await closeServer(app.server)
    await app.close()
  },
}
const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db', { signals })
const emails = pond.queue<{ to: string }>('emails', { capacity: 100_000 })
emails.work((job) => `sent to ${job.data.to}`)

const app = fastify()
app.register(toFastify(accept(emails)), { prefix: '/emails' })
app.register(toFastify(follow(pond)), { prefix: '/jobs' })

// curl -i localhost:3000/emails -H 'content-type: application/json' -H 'prefer: wait=10' -d '{"to":"ada@example.org"}'
console.log(`listening on ${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}`)
