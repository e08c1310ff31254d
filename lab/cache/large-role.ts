/** `large-role.ts put|get REDIS` */
import { createHash, randomFillSync } from 'node:crypto'
import { Cache } from '../../src/cache/index.ts'

const [what, redis = ''] = process.argv.slice(2)
const PARTS = 3
const PART = 200_000_000

interface Large {
  name: string
  parts: Uint8Array[]
}

function described({ name, parts }: Large): { hash: string; bytes: number } {
  const hash = createHash('sha256').update(name)
  for (const part of parts) hash.update(part)
  return { hash: hash.digest('hex'), bytes: parts.reduce((all, { length }) => all + length, 0) }
}

const cache = await Cache.open(redis, { memory: 0 })
let facts: ReturnType<typeof described>
// What cannot be compressed is the worst case.
const parts = what === 'put' ? Array.from({ length: PARTS }, () => randomFillSync(new Uint8Array(PART))) : []
const before = process.memoryUsage().rss
const began = performance.now()
let seconds: number
if (what === 'put') {
  const value: Large = { name: 'large', parts }
  await cache.set('large', value, { ttl: '1h' })
  seconds = (performance.now() - began) / 1000
  facts = described(value)
} else {
  const value = (await cache.get('large')) as Large
  seconds = (performance.now() - began) / 1000
  facts = described(value)
}
console.log(JSON.stringify({ seconds, before, peak: process.resourceUsage().maxRSS * 1024, ...facts }))
await cache.close()
