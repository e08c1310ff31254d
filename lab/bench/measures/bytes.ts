/** What a waiting job takes in Redis: the difference in `used_memory`. The bodies are as small as `{"n":12345}`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { openContender } from '../contender.ts'
import type { Measure } from '../task.ts'
import { WAYS } from './push.ts'

export const bytes: Measure<'bytes'> = async ({ contender: name, url, count }) => {
  const redis = new Redis(url)
  const contender = await openContender(name, { url, concurrency: 1, forget: false })
  const line = contender.line('bytes', async () => {})
  // Scripts, connections and what there is once per queue are not the jobs' own.
  await line.push({ n: -1 })
  const before = await settledMemory(redis)
  await WAYS.bulk(line, count)
  const after = await settledMemory(redis)
  await contender.close()
  redis.disconnect()
  return { bytes: (after - before) / count }
}

/** Connections' buffers shrink some time after they were used, so the least of a few seconds is what stays. */
async function settledMemory(redis: Redis): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 12; i++) {
    await sleep(250)
    const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
    least = Math.min(least, used)
  }
  return least
}
