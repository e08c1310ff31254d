import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Cache } from 'millpond/cache'
import { closeServer, toNode } from 'millpond/web/node'

const cache = await Cache.open(process.env.CACHE ?? 'redis://localhost', { memory: '64mb' })

// What takes long: a database, another service.
const sold = new Map<number, number>()
const loadProduct = async (id: number) => {
  if (!Number.isInteger(id)) return null
  const times = (sold.get(id) ?? 0) + 1
  sold.set(id, times)
  return { id, name: `product ${id}`, sold: times }
}

const product = cache.wrap(loadProduct, {
  key: (id) => `product:${id}`,
  ttl: '1m',
  stale: '10m',
  staleIfError: '1h',
  negative: '5s',
  tags: ['products'],
})

// curl -i localhost:3000/products/42
// curl -i localhost:3000/products/42 -X PUT
const server = createServer(
  toNode(async (request) => {
    const id = Number(/^\/products\/(\d+)$/.exec(new URL(request.url).pathname)?.[1])
    if (request.method !== 'PUT') return product.response(request, id)
    await product.invalidate(id)
    return new Response(null, { status: 204 })
  }),
)
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
server.once('listening', () => console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`))

const stop = () => closeServer(server).then(() => cache.close())
process.once('SIGTERM', stop).once('SIGINT', stop)
