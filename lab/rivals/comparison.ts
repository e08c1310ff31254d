/** Rows from a task of ours and those of the rivals, measured in turn. */
import { atLeast, atMost, type Bar, type Figure, type Row, ratio, type Unit } from '../bench/row.ts'
import { MISSING, type Summary } from '../bench/statistics.ts'
import type { ContenderName } from './contender.ts'
import type { Place } from './place.ts'
import { inTurn } from './runner.ts'
import type { Stage } from './section.ts'
import type { Task } from './task.ts'

export interface Want {
  row: string
  /** Of the outcome. */
  figure: string
  unit: Unit
  bar?: (ours: Summary, rivals: readonly Figure[]) => Bar
}

/** Rows that are measured together. */
export interface Measure {
  /** Ours comes first. */
  tasks: readonly Task[]
  /** All from the same tasks. */
  wants: readonly Want[]
  /** `npm run floors` measures it too, beside these rivals alone. */
  floor?: readonly ContenderName[]
}

export async function compare(
  { tasks, wants }: Measure,
  runs: number,
  place: Place,
  { tell, fail }: Pick<Stage, 'tell' | 'fail'>,
): Promise<Row[]> {
  const all = await inTurn(tasks, runs, place, tell, fail)
  return wants.map(({ row, figure, unit, bar }) => {
    const [ours = MISSING, ...theirs] = all.map((figures) => figures(figure))
    const rivals = tasks.slice(1).map(({ contender }, at) => ({ name: contender, figure: theirs[at] ?? MISSING }))
    return { name: row, unit, ours, rivals, bar: bar?.(ours, rivals) }
  })
}

/** At least so many times the best of the rivals named, or of all. */
export function timesBest(least: number, ...names: string[]): NonNullable<Want['bar']> {
  return (ours, rivals) => {
    const among = rivals.filter(({ name }) => names.length === 0 || names.includes(name))
    return atLeast(Math.min(...among.map(({ figure }) => ratio('jobs/s', ours, figure))), least, ' ×')
  }
}

/** Ours is at most this share of the least of theirs. */
export function shareOfLeast(most: number): NonNullable<Want['bar']> {
  return (ours, rivals) => atMost(ours.median / Math.min(...rivals.map(({ figure }) => figure.median)), most, ' ×')
}
