/** Redis and PostgreSQL, beside the queues that people use there. */
import type { StoreName } from '../../limits/stores.ts'
import { compare, type Measure } from '../../rivals/comparison.ts'
import { plan as postgresPlan } from '../../rivals/sections/postgres.ts'
import { plan as redisPlan } from '../../rivals/sections/redis.ts'
import { floorsOf, type Part } from '../part.ts'

/** They wait for no floor: no samples of it. */
export const redis: Part = part('redis', 'BullMQ', (scale) => redisPlan(scale, 0))
export const postgres: Part = part('postgres', 'Graphile Worker', postgresPlan)

function part(store: StoreName, rival: string, plan: (scale: number) => readonly Measure[]): Part {
  return async function* (stage) {
    const place = await stage.place(store)
    for (const { floor, tasks, wants } of plan(stage.scale)) {
      if (floor === undefined) continue
      const [ours, ...theirs] = tasks
      if (ours === undefined) continue
      const beside = theirs.filter(({ contender }) => floor.some((name) => name === contender))
      // Memory does not sway.
      const runs = ours.measure === 'bytes' ? 1 : stage.runs
      const rows = await compare({ tasks: [ours, ...beside], wants }, runs, place, stage)
      yield* floorsOf(`${store === 'redis' ? 'Redis' : 'PostgreSQL'}, beside ${rival}`, rows)
    }
  }
}
