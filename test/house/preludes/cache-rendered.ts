import fastify from 'fastify'
import { Cache } from 'millpond/cache'

const cache = await Cache.open('redis://localhost')
const product = cache.wrap(async (id: number) => ({ id }), { key: (id) => `rendered:${id}`, ttl: '1m' })
const app = fastify()
app.get('/', async (request, reply) => {
  // The block:
  // BLOCK
  return reply
})
// After the block:
const answer = await app.inject('/')
if (answer.json().id !== 42) throw new Error(answer.body)
await cache.close()
