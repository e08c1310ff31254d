import type { ContenderName, Durability } from '../contender.ts'
import type { DrainTask, PushTask, Task, Work } from '../measure.ts'
import { atLeast, type Figure, type Row } from '../row.ts'
import { inTurn } from '../runner.ts'
import type { Section } from '../section.ts'
import { MISSING } from '../statistics.ts'

export interface Line {
  name: string
  ours: (durability: Durability) => Task
  rival?: (durability: Durability) => Task
  /** Jobs/s that `synchronous=FULL` must reach. */
  least?: number
}

export const sqlite: Section = async function* ({ runs, quick }, tell) {
  const lines = plan(quick ? 0.2 : 1)
  for (const durability of ['full', 'normal'] as const) {
    const rows: Row[] = []
    for (const line of lines) {
      tell(`sqlite ${durability}: ${line.name}`)
      rows.push(...(await measure(line, durability, runs)))
    }
    yield {
      title: `SQLite, synchronous=${durability.toUpperCase()}, beside plainjob with the same setting`,
      rows,
      notes: ['cold: the first round of a process; warm: the median of the next 2; each bar is checked on both'],
    }
  }
}

/** @returns a row of the warm rounds and one of the cold ones */
export async function measure(
  { name, ours, rival, least }: Line,
  durability: Durability,
  runs: number,
): Promise<Row[]> {
  const tasks = rival === undefined ? [ours(durability)] : [ours(durability), rival(durability)]
  const [figures = {}, beside] = await inTurn(tasks, runs)
  return (['warm', 'cold'] as const).map((heat) => {
    const rivals: Figure[] =
      beside?.[heat] === undefined ? [] : [{ name: 'plainjob', figure: beside[heat], cpu: beside[`${heat} cpu`] }]
    const own = figures[heat] ?? MISSING
    const bar = least !== undefined && durability === 'full' ? atLeast(own.median, least) : undefined
    return { name: `${name}, ${heat}`, unit: 'jobs/s', ours: own, cpu: figures[`${heat} cpu`], rivals, bar }
  })
}

export function plan(scale: number): Line[] {
  const rounds = 3
  const push =
    (contender: ContenderName, way: PushTask['way'], jobs: number) =>
    (durability: Durability): PushTask => {
      return { measure: 'push', contender, durability, way, count: jobs * scale, rounds }
    }
  const drain =
    (contender: ContenderName, work: Work, jobs: number, forget = false) =>
    (durability: Durability): DrainTask => {
      return { measure: 'drain', contender, durability, from: 'backlog', work, count: jobs * scale, rounds, forget }
    }
  return [
    { name: 'push, one by one', ours: push('millpond', 'one', 5000), rival: push('plainjob', 'one', 5000) },
    {
      name: 'push, 50 in flight',
      ours: push('millpond', 'flight', 100_000),
      rival: push('plainjob', 'flight', 5000),
      least: 80_000,
    },
    {
      name: 'push, bulk of 500',
      ours: push('millpond', 'bulk', 200_000),
      rival: push('plainjob', 'bulk', 100_000),
      least: 300_000,
    },
    { name: 'push, bulk of 500, 2 in flight', ours: push('millpond', 'bulk2', 200_000) },
    {
      name: 'drain, no-op',
      ours: drain('millpond', 'nothing', 100_000),
      rival: drain('plainjob', 'nothing', 5000),
      least: 120_000,
    },
    {
      name: 'drain, one turn',
      ours: drain('millpond', 'a turn', 100_000),
      rival: drain('plainjob', 'a turn', 5000),
      least: 120_000,
    },
    { name: 'drain, no-op, done not kept', ours: drain('millpond', 'nothing', 100_000, true) },
  ]
}
