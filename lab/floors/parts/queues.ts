/** Queues in one process, and on servers beside the queues that people use there. */
import { compare, type Measured } from '../../bench/comparison.ts'
import { COMPARISONS, drains } from '../../bench/sections/memory.ts'
import { postgresPlan, redisPlan } from '../../bench/sections/servers.ts'
import { plan as sqlitePlan } from '../../bench/sections/sqlite.ts'
import type { StoreName } from '../../places.ts'
import { floorsOf, type Part, type Size } from '../part.ts'

export const sqlite = part('SQLite FULL', 'sqlite', ({ quick }) => sqlitePlan(quick ? 0.1 : 0.5, 'full'))
export const redis = part('Redis, beside BullMQ', 'redis', ({ quick }) => redisPlan(quick ? 0.05 : 0.2))
export const postgres = part('PostgreSQL, beside Graphile Worker', 'postgres', ({ quick }) =>
  postgresPlan(quick ? 0.05 : 0.2),
)

/** Beside fastq as it is used: paused and then resumed, it would leave out most of what it does. */
export const memory: Part = async function* ({ runs, quick }, stage) {
  const comparisons = COMPARISONS.filter(({ from, theirs }) => from === 'backlog' && theirs === 'each')
  const place = await stage.place('memory')
  const rows = await drains(comparisons, ['fastq'], 'nothing', quick ? 10_000 : 100_000, runs, place)
  yield* floorsOf(
    'memory, beside fastq.promise',
    rows.filter(({ name }) => !name.endsWith('cold')),
  )
}

function part(about: string, store: StoreName, plan: (size: Size) => readonly Measured[]): Part {
  return async function* (size, stage) {
    const place = await stage.place(store)
    for (const { floor, tasks, wants } of plan(size)) {
      const [ours, ...theirs] = tasks
      if (floor === undefined || ours === undefined) continue
      const beside = theirs.filter(({ contender }) => floor.some((name) => name === contender))
      const warm = wants.filter(({ figure }) => figure !== 'cold')
      // Memory does not sway.
      const runs = ours.measure === 'bytes' ? 1 : size.runs
      yield* floorsOf(about, await compare({ tasks: [ours, ...beside], wants: warm }, runs, place))
    }
  }
}
