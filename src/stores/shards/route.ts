/** Which shard has a queue: contract/shards.md. */
import { createHash } from 'node:crypto'

/** Names that are kept with their shards: a client may name any number of queues. */
const MAX_QUEUES = 10_000

/** Rendezvous hashing: of all numbers from 0 to `count` − 1, the one whose hash with the name is the highest. */
export function shardOf(queue: string, count: number): number {
  const scores = Array.from({ length: count }, (_, shard) =>
    createHash('sha256').update(`${shard}/${queue}`).digest().readBigUInt64BE(),
  )
  return scores.reduce((best, score, shard) => (score > (scores[best] ?? 0n) ? shard : best), 0)
}

export function routeOf(count: number): (queue: string) => number {
  const known = new Map<string, number>()
  return (queue) => {
    let shard = known.get(queue)
    if (shard === undefined) {
      if (known.size >= MAX_QUEUES) known.clear()
      shard = shardOf(queue, count)
      known.set(queue, shard)
    }
    return shard
  }
}
