/** One variant with one size under load: an empty Redis, a fresh process. */
import { Redis } from 'ioredis'
import { Child } from '../child.ts'
import { peakMemory } from '../cpu.ts'
import { type Load, load } from '../load/load.ts'
import { items } from './items.ts'
import type { VariantName } from './variants.ts'

/** Before what is measured, in seconds: the value is made, and the code gets hot. */
const WARMING = 1
const SERVER = new URL('server.ts', import.meta.url)

export interface Outcome extends Load {
  /** What all keys take in Redis, in bytes, by MEMORY USAGE. */
  redis: number
  /** 1 where what it answers is not the value. */
  wrong: number
  /** The most that the server had in memory, in bytes; NaN where nobody tells. */
  memory: number
}

export async function run(
  name: VariantName,
  count: number,
  connections: number,
  seconds: number,
  url: string,
): Promise<Outcome> {
  const server = await Child.start(SERVER, [name, url, String(count)])
  try {
    const address = `http://127.0.0.1:${server.port}/`
    // The first makes and stores it, the second gets what was stored.
    const wrong = (await isRight(address, count)) && (await isRight(address, count)) ? 0 : 1
    await load(address, { method: 'POST', connections, seconds: WARMING })
    const loaded = await load(address, { method: 'POST', connections, seconds })
    return { ...loaded, redis: await memoryOf(url), wrong, memory: peakMemory(server.pid) }
  } finally {
    await server.stop()
  }
}

async function isRight(address: string, count: number): Promise<boolean> {
  const response = await fetch(address, { method: 'POST' })
  const got = JSON.parse(await response.text())
  const wanted = items(count)
  return (
    Array.isArray(got) &&
    got.length === count &&
    [0, count >> 1, count - 1].every((at) => {
      const { createdAt, ...rest } = got[at]
      const { createdAt: _, ...same } = wanted[at] ?? { createdAt: 0 }
      return typeof createdAt === 'number' && JSON.stringify(rest) === JSON.stringify(same)
    })
  )
}

async function memoryOf(url: string): Promise<number> {
  const redis = new Redis(url)
  try {
    const keys = await redis.keys('*')
    const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
    return sizes.reduce<number>((all, size) => all + Number(size ?? 0), 0)
  } finally {
    redis.disconnect()
  }
}
