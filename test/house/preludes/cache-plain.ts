import { Cache } from 'millpond/cache'

const cache = await Cache.open('redis://localhost', { prefix: 'plain' })
const value = { name: 'lamp' }
const options = { key: (id: number) => `plain:${id}`, ttl: '1m' }
const loadProduct = async (id: number): Promise<unknown> => ({ id })
// After the block:
await product(42)
await cache.close()
