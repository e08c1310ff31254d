import { compare, type Measured, reaches, type Want } from '../comparison.ts'
import type { ContenderName } from '../contender.ts'
import type { Section } from '../section.ts'
import type { Kind, PushTask, Work } from '../task.ts'

export const sqlite: Section = async function* ({ runs, quick }, stage) {
  for (const durability of ['full', 'normal'] as const) {
    const place = await stage.place(durability === 'full' ? 'sqlite' : 'sqlite-normal')
    const rows = []
    for (const each of plan(quick ? 0.2 : 1, durability)) rows.push(...(await compare(each, runs, place)))
    yield {
      title: `SQLite, synchronous=${durability.toUpperCase()}, beside plainjob with the same setting`,
      rows,
      notes: ['cold: the first round of a process; warm: the median of the next 2; each bar is checked on both'],
    }
  }
}

const ROUNDS = 3

/** The bars are for FULL. */
export function plan(scale: number, durability: 'full' | 'normal'): Measured[] {
  type Make = (count: number) => Kind
  const line = (name: string, make: Make, ours: number, theirs?: number, least?: number): Measured => {
    const bar = least === undefined || durability !== 'full' ? {} : { bar: reaches(least) }
    const heat = (figure: string): Want => ({ row: `${name}, ${figure}`, figure, unit: 'jobs/s', ...bar })
    const of = (contender: ContenderName, count: number) => ({ ...make(count * scale), contender })
    return {
      tasks: [of('Millpond', ours), ...(theirs === undefined ? [] : [of('plainjob', theirs)])],
      wants: [heat('warm'), heat('cold')],
      ...(least === undefined ? {} : { floor: [] }),
    }
  }
  const push =
    (way: PushTask['way']): Make =>
    (count) => ({ measure: 'push', way, count, rounds: ROUNDS })
  const drain =
    (work: Work, forget = false): Make =>
    (count) => ({ measure: 'drain', from: 'backlog', work, count, rounds: ROUNDS, forget })
  return [
    line('push, one by one', push('one'), 5000, 5000),
    line('push, 50 in flight', push('flight'), 100_000, 5000, 80_000),
    line('push, bulk of 500', push('bulk'), 200_000, 100_000, 300_000),
    line('push, bulk of 500, 2 in flight', push('bulk2'), 200_000),
    line('drain, no-op', drain('nothing'), 100_000, 5000, 120_000),
    line('drain, one turn', drain('a turn'), 100_000, 5000, 120_000),
    line('drain, no-op, done not kept', drain('nothing', true), 100_000),
  ]
}
